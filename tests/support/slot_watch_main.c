/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A device on the host that decides by its counters whether it keeps a new model:
 *
 *	PROGRAM SAMPLES MARGIN RUNS IMAGE...
 *
 * reference.h says what its input should look like. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tinyml/player.h>
#include <tinyml/slot_watch.h>

#include "reference.h"

#define BYTES (1 << 16)

TINYML_SLOT_PLAYER_DEFINE(slot, 8192, 0);
TINYML_SLOT_WATCH_DEFINE(seen, slot);

static _Alignas(32) uint8_t memory[2][BYTES];
static uint8_t image[BYTES];
static float samples[4096][64];

static int erase(void *context, uint32_t offset, uint32_t bytes)
{
	memset((uint8_t *)context + offset, 0xff, bytes);
	return 0;
}

static int write(void *context, uint32_t offset, const void *data, uint32_t bytes)
{
	memcpy((uint8_t *)context + offset, data, bytes);
	return 0;
}

static struct tinyml_flash flash[2] = {
	{.erase = erase,
	 .write = write,
	 .context = memory[0],
	 .erase_bytes = 4096,
	 .write_bytes = 8},
	{.erase = erase,
	 .write = write,
	 .context = memory[1],
	 .erase_bytes = 4096,
	 .write_bytes = 8},
};
static struct tinyml_slots slots = {
	.region = {{memory[0], 0x10000, BYTES, &flash[0]}, {memory[1], 0x20000, BYTES, &flash[1]}},
	.active = -1,
};

static size_t load(const char *path, void *to, size_t room)
{
	FILE *file = fopen(path, "rb");
	const size_t bytes = file != NULL ? fread(to, 1, room, file) : 0;

	fclose(file);
	return bytes;
}

static int receive(const char *path)
{
	static struct tinyml_update update;
	const uint32_t bytes = (uint32_t)load(path, image, sizeof(image));
	int error = tinyml_update_begin(&update, &slots, bytes, false);

	error = error != 0 ? error : tinyml_update_write(&update, image, bytes);
	return error != 0 ? error : tinyml_update_finish(&update);
}

int main(int argc, char **argv)
{
	const size_t count = load(argv[1], samples, sizeof(samples)) / sizeof(samples[0]);
	const char *drift = getenv("DRIFT");
	const struct tinyml_slot_limits limits = {.margin = (uint32_t)atoi(argv[2]),
						  .runs = (uint32_t)atoi(argv[3]),
						  .drift = drift != NULL ? (uint32_t)atoi(drift)
									 : 0u};

	seen.reference = drift != NULL ? &digits_reference : NULL;

	printf("start %d\n", tinyml_slots_open(&slots, &slot));
	tinyml_slot_watch_open(&seen);
	printf("without a model %d\n", slot.model.run());
	for (int i = 4; i < argc; i++) {
		int verdict = -99;
		size_t run = 0;

		printf("receive %d\n", receive(argv[i]));
		printf("try %d\n", tinyml_slots_open(&slots, &slot));
		verdict = tinyml_slots_confirm_by_watch(&slots, &seen, &limits);
		while (verdict == TINYML_SLOT_WAITING && run < count) {
			memcpy(slot.model.inputs[0].data, samples[run++], sizeof(samples[0]));
			if (slot.model.run() != 0) {
				return 1;
			}
			if (run == limits.runs) { /* the last look at the counters */
				const struct tinyml_slot_counters *c = &seen.counters;

				printf("counted %u %u %u %u %u:", c->totals.runs, c->scores.top,
				       c->scores.margin, c->scores.entropy, c->scores.switches);
				for (int k = 0; k < 10; k++) {
					printf(" %u", c->decisions[k]);
				}
				printf("\n");
			}
			verdict = tinyml_slots_confirm_by_watch(&slots, &seen, &limits);
		}
		printf("verdict %d after %zu runs, version %u\n", verdict, run,
		       slots.active < 0 ? 0u : slot.version[0] & 0xffu);
	}
	memcpy(slot.model.inputs[0].data, samples[0], sizeof(samples[0]));
	printf("after %d %d\n", slots.active < 0 ? 0 : slot.model.run(),
	       tinyml_slots_confirm_by_watch(&slots, &seen, &limits));
	return 0;
}
