/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Two copies of learnt values in simulated NOR flash, on which power fails.
 *
 *	adapt_store_sim cuts UNIT ERASE    power fails at every write and erase of a save, and of
 *	                                   the save after it
 *	adapt_store_sim faults UNIT ERASE  every write and erase fails once; damage; wrong flash
 *
 * UNIT is the number of bytes that the flash writes at once, ERASE that of an erase unit; 0 for
 * units of different sizes. Prints how many operations a save has. */

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tinyml/adapt_store.h>

#include "torn.h"

#define VALUES     53u /* bytes: no whole write unit */
#define COPY_BYTES 512u
#define TEARS      7

static struct {
	struct tinyml_adapt_header header;
	uint8_t values[VALUES];
} learnt;

static struct tinyml_adapt_run run;
static bool worse;

static int check(const struct tinyml_adapt *adapt)
{
	(void)adapt;
	return worse ? TINYML_ADAPT_EWORSE : 0;
}

static bool valid(const struct tinyml_adapt *adapt, const void *values)
{
	(void)adapt;
	return ((const uint8_t *)values)[0] != 0xeeu; /* outside the limits */
}

static struct tinyml_adapt adapt = {
	.learnt = &learnt.header,
	.run = &run,
	.check = check,
	.valid = valid,
	.bytes = sizeof(struct tinyml_adapt_header) + VALUES,
	.run_bytes = sizeof(run),
	.kind = TINYML_ADAPT_LAST,
	.digest = {1, 2, 3, 4, 5, 6, 7, 8},
};

/* --- flash ----------------------------------------------------------------------------------- */

static uint8_t memory[2u * COPY_BYTES];
static uint32_t write_unit, erase_unit;
static jmp_buf power_failure;
static volatile long operation, cut_at, fails_at;
static volatile int tear;
static uint32_t noise = 1;

static void demand(bool fine, const char *what)
{
	if (!fine) {
		fprintf(stderr, "cut %ld, tear %d: %s\n", cut_at, tear, what);
		abort();
	}
}

static uint8_t random_byte(void)
{
	noise ^= noise << 13;
	noise ^= noise >> 17;
	noise ^= noise << 5;
	return (uint8_t)(noise >> 24);
}

/* Draws a byte only where it is used. */
static uint8_t torn_byte(uint8_t before, uint8_t after, uint32_t position, uint32_t bytes)
{
	return torn(tear, before, after, position, bytes, tear > 3 ? random_byte() : 0);
}

static int change(uint32_t start, const uint8_t *after, uint32_t bytes)
{
	const bool cut = ++operation == cut_at;

	if (operation == fails_at) {
		return -5;
	}
	for (uint32_t i = 0; i < bytes; i++) {
		const uint8_t value = after == NULL ? 0xff : after[i];

		memory[start + i] = cut ? torn_byte(memory[start + i], value, i, bytes) : value;
	}
	if (cut) {
		longjmp(power_failure, 1);
	}
	return 0;
}

/* 256 bytes, then units of 64. */
static uint32_t mixed_unit(void *context, uint32_t offset)
{
	(void)context;
	return offset == 0u ? 256u : 64u;
}

static int erase_flash(void *context, uint32_t offset, uint32_t bytes)
{
	demand(bytes == (erase_unit != 0u ? erase_unit : mixed_unit(NULL, offset)) &&
		       offset % bytes == 0u && offset + bytes <= COPY_BYTES,
	       "not an erase unit");
	return change((uint32_t)(uintptr_t)context + offset, NULL, bytes);
}

static int write_flash(void *context, uint32_t offset, const void *data, uint32_t bytes)
{
	const uint32_t start = (uint32_t)(uintptr_t)context + offset;

	demand(offset % write_unit == 0u && bytes == write_unit && offset + bytes <= COPY_BYTES,
	       "not a write unit");
	for (uint32_t i = 0; i < bytes; i++) {
		demand(memory[start + i] == 0xff, "write without erase");
	}
	return change(start, data, bytes);
}

static int read_flash(void *context, uint32_t offset, void *data, uint32_t bytes)
{
	demand(offset + bytes <= COPY_BYTES, "read outside");
	memcpy(data, memory + (uintptr_t)context + offset, bytes);
	return 0;
}

static struct tinyml_flash flash[2];
static struct tinyml_adapt_store store;

static void make_flash(void)
{
	for (uint32_t i = 0; i < 2u; i++) {
		flash[i] = (struct tinyml_flash){
			.erase = erase_flash,
			.write = write_flash,
			.context = (void *)(uintptr_t)(i * COPY_BYTES),
			.erase_bytes = erase_unit,
			.write_bytes = write_unit,
			.unit = erase_unit != 0u ? NULL : mixed_unit,
			.read = i == 0u ? NULL : read_flash, /* one copy of each sort */
		};
		store.copy[i] = (struct tinyml_slot_region){i == 0u ? memory : NULL, 0, COPY_BYTES,
							    &flash[i]};
	}
}

/* --- what is learnt --------------------------------------------------------------------------- */

static void learn(uint8_t what)
{
	learnt.header.count = what;
	memset(learnt.values, what, VALUES);
}

/* After a restart: what is found, 0 for nothing. */
static uint8_t restarted(void)
{
	memset(&learnt, 0xa5, sizeof(learnt));
	if (tinyml_adapt_load(&store, &adapt) != 0) {
		demand(learnt.header.count == 0u && learnt.values[0] == 0u, "not as the factory");
		return 0;
	}
	for (uint32_t i = 0; i < VALUES; i++) {
		demand(learnt.values[i] == learnt.header.count, "a mixture");
	}
	return (uint8_t)learnt.header.count;
}

/* A save that power failure may end; whether it returned. */
static bool saved(uint8_t what, long cut)
{
	operation = 0;
	cut_at = cut;
	if (setjmp(power_failure) == 0) {
		learn(what);
		demand(tinyml_adapt_save(&store, &adapt) == 0, "a save fails");
		cut_at = 0;
		return true;
	}
	cut_at = 0;
	return false;
}

static void start_with(const uint8_t *content)
{
	memcpy(memory, content, sizeof(memory));
}

/* Power fails at each operation, and then at each of the next save; what was there at first is in
 * `content`. */
static long cut_everywhere(const uint8_t *content, uint8_t before)
{
	long last = 0, cuts = 0;

	for (tear = 0; tear < TEARS; tear++) {
		uint8_t interrupted[sizeof(memory)];

		for (long cut = 1;; cut++) {
			uint8_t found;
			bool whole;

			start_with(content);
			whole = saved(20, cut);
			last = operation;
			found = restarted();
			demand(found == 20u || (!whole && found == before),
			       "neither what was learnt before nor after");
			if (whole) {
				break;
			}
			cuts++;
			memcpy(interrupted, memory, sizeof(memory));
			for (long second = 1;; second++) {
				uint8_t then;

				start_with(interrupted);
				whole = saved(30, second);
				then = restarted();
				demand(then == 30u || (!whole && then == found),
				       "the second failure loses it");
				if (whole) {
					break;
				}
				cuts++;
			}
		}
	}
	tear = 0;
	printf("%ld operations, %ld cuts\n", last, cuts);
	return last;
}

static void cuts(void)
{
	uint8_t content[sizeof(memory)];
	long operations;

	memset(memory, 0xff, sizeof(memory));
	demand(restarted() == 0u, "something in blank flash");
	memcpy(content, memory, sizeof(memory));
	(void)cut_everywhere(content, 0);
	for (uint8_t i = 1; i < 4u; i++) { /* into each of the copies */
		start_with(content);
		demand(saved(i, 0) && restarted() == i, "not what was saved");
		memcpy(content, memory, sizeof(memory));
		operations = cut_everywhere(content, i);
		demand(operations > 3, "too few operations");
	}
	/* The same again is not written again. */
	start_with(content);
	demand(saved(3, 0) && operation == 0, "stored twice");
}

static void save_with_faults(void)
{
	long last = 0;

	for (long fault = 1; fault == 1 || fault <= last; fault++) {
		int status;

		memset(memory, 0xff, sizeof(memory));
		fails_at = 0;
		demand(saved(1, 0) && saved(2, 0), "a save fails");
		operation = 0;
		fails_at = fault;
		learn(3);
		status = tinyml_adapt_save(&store, &adapt);
		last = operation > last ? operation : last;
		demand(fault > operation ? status == 0 : status == TINYML_ADAPT_EFLASH,
		       "a fault is not reported");
		fails_at = 0;
		demand(restarted() == (status == 0 ? 3u : 2u), "a fault loses what was learnt");
		demand(saved(4, 0) && restarted() == 4u, "not the next one");
	}
	printf("%ld operations fail\n", last);
}

static void damage(void)
{
	uint8_t content[sizeof(memory)];

	memset(memory, 0xff, sizeof(memory));
	demand(saved(1, 0) && saved(2, 0), "a save fails");
	memcpy(content, memory, sizeof(memory));
	for (uint32_t bit = 0; bit < 8u * sizeof(memory); bit++) {
		const bool in_second = bit >= 8u * COPY_BYTES;
		uint8_t found;

		memory[bit / 8u] ^= (uint8_t)(1u << bit % 8u);
		found = restarted();
		/* The second copy is the newer one. Some bits are those of no value. */
		demand(in_second ? found == 1u || found == 2u : found == 2u, "damage is used");
		demand(!in_second || bit % (8u * COPY_BYTES) >= 8u * adapt.bytes || found == 1u,
		       "damaged values are used");
		memcpy(memory, content, sizeof(memory));
	}
	/* Values of another model, and values outside the limits, which no save of ours makes. */
	adapt.digest[0]++;
	demand(restarted() == 0u, "another model's");
	demand(saved(7, 0) && restarted() == 7u, "another model cannot save");
	adapt.digest[0]--;
	start_with(content);
	demand(saved(0xee, 0) && restarted() == 0u, "outside the limits");
	start_with(content);
	worse = true;
	learn(9);
	demand(tinyml_adapt_save(&store, &adapt) == TINYML_ADAPT_EWORSE, "worse values are saved");
	worse = false;
	demand(memcmp(memory, content, sizeof(memory)) == 0, "flash was touched");
}

static void wrong_flash(void)
{
	for (int i = 0; i < 9; i++) {
		struct tinyml_flash right = flash[1];

		switch (i) {
		case 0:
			flash[1].erase = NULL;
			break;
		case 1:
			flash[1].write = NULL;
			break;
		case 2:
			flash[1].write_bytes = 0;
			break;
		case 3:
			flash[1].write_bytes = 24;
			break;
		case 4:
			flash[1].write_bytes = 2u * TINYML_FLASH_WRITE_MAX;
			break;
		case 5:
			flash[1].read = NULL; /* and it is not memory either */
			break;
		case 6:
			store.copy[1].bytes = 64; /* too small */
			break;
		case 7:
			store.copy[1].flash = NULL;
			break;
		default:
			flash[1].unit = NULL;
			flash[1].erase_bytes = 3u * COPY_BYTES;
			break;
		}
		operation = 0;
		demand(tinyml_adapt_save(&store, &adapt) == TINYML_EINVAL && operation == 0 &&
			       tinyml_adapt_load(&store, &adapt) == TINYML_EINVAL,
		       "flash that cannot be");
		flash[1] = right;
		store.copy[1].flash = &flash[1];
		store.copy[1].bytes = COPY_BYTES;
	}
}

int main(int count, char **words)
{
	if (count != 4) {
		return 2;
	}
	write_unit = (uint32_t)strtoul(words[2], NULL, 10);
	erase_unit = (uint32_t)strtoul(words[3], NULL, 10);
	make_flash();
	if (strcmp(words[1], "cuts") == 0) {
		cuts();
	} else {
		save_with_faults();
		damage();
		wrong_flash();
	}
	printf("fine\n");
	return 0;
}
