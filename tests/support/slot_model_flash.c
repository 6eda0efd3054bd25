/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Flash of several kinds, in which any operation may be the last one before power fails. */

#include <stdlib.h>
#include <string.h>

#include "format.h" /* of runtime/slot */
#include "marks.h"
#include "slot_model.h"
#include "torn.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define FORBID(start, bytes) ASAN_POISON_MEMORY_REGION(start, bytes)
#define ALLOW(start, bytes)  ASAN_UNPOISON_MEMORY_REGION(start, bytes)
#else
#define FORBID(start, bytes) ((void)(start), (void)(bytes))
#define ALLOW(start, bytes)  ((void)(start), (void)(bytes))
#endif

const struct kind kinds[] = {
	/* name, erase units of slot a, of slot b, write unit, stream, once, faults */
	{"nor", {{{256, 3}}, {{256, 3}}}, 16, 0, false, false},
	{"ecc", {{{256, 3}}, {{256, 3}}}, 16, 0, true, false},
	{"ecc-32", {{{256, 3}}, {{256, 3}}}, 32, 0, true, false},
	{"small-units", {{{64, 10}}, {{128, 5}}}, 8, 0, true, false},
	{"mixed-units", {{{128, 2}, {256, 2}}, {{512, 1}, {256, 1}}}, 16, 0, true, false},
	{"one-unit", {{{768, 1}}, {{768, 1}}}, 16, 0, true, false},
	{"large-writes", {{{512, 2}}, {{512, 2}}}, 64, 0, true, false},
	{"stream", {{{256, 3}}, {{256, 3}}}, 8, 64, true, false},
	{"faults", {{{256, 3}}, {{256, 3}}}, 16, 0, true, true},
	{"faults-pages", {{{64, 16}}, {{64, 16}}}, 64, 0, true, true},
};
const unsigned int kind_count = sizeof(kinds) / sizeof(kinds[0]);

const struct kind *kind;
uint32_t slot_bytes;
jmp_buf power_failure;
long operation, cut_at;
int tear;

static struct tinyml_flash flash[2];
static struct tinyml_flash_stream stream;
static uint8_t *mapped[2]; /* what the core sees; what it must not read is forbidden to it */

static uint32_t unit_at(void *context, uint32_t offset)
{
	uintptr_t slot = (uintptr_t)context;
	uint32_t at = 0;

	for (int i = 0; i < 2; i++) {
		for (uint32_t n = 0; n < kind->units[slot][i].count; n++) {
			if (at == offset) {
				return kind->units[slot][i].bytes;
			}
			at += kind->units[slot][i].bytes;
		}
	}
	demand(false, "no erase unit starts here");
	return 0;
}

/* Let the core see a part of a slot, or not. */
static void mirror(uint32_t slot, uint32_t offset, uint32_t bytes)
{
	if (!kind->faults) {
		return;
	}
	for (uint32_t end = offset + bytes; offset < end; offset += kind->write_bytes) {
		uint8_t *there = mapped[slot] + offset;

		ALLOW(there, kind->write_bytes);
		if (world.units[slot][offset / kind->write_bytes] == UNIT_WRITTEN) {
			memcpy(there, world.content[slot] + offset, kind->write_bytes);
		} else {
			memset(there, 0xee, kind->write_bytes);
			FORBID(there, kind->write_bytes);
		}
	}
}

void mirror_flash(void)
{
	mirror(0, 0, slot_bytes);
	mirror(1, 0, slot_bytes);
}

static uint8_t torn_byte(uint8_t before, uint8_t after, uint32_t position, uint32_t bytes)
{
	return torn(tear, before, after, position, bytes, (uint8_t)(0x35u + 0x4fu * position));
}

/* Whether an operation that power failure ends has reached a byte. */
static bool is_touched(uint32_t position, uint32_t bytes)
{
	return tear == 1 ? position < bytes / 2u : tear == 2 ? position >= bytes / 2u : true;
}

/* No operation may touch an image in use, or the last one that was confirmed. */
static void check_place(int slot, uint32_t offset, bool erases)
{
	const struct tinyml_slot_region *region = &world.slots.region[slot];
	const bool is_mark = !erases && offset >= slot_bytes - marks_bytes(region);

	demand(is_mark || world.slots.slot == NULL || world.slots.active != slot,
	       "the image of the model in use is changed");
	demand(is_mark || world.ghost.kept < 0 || world.ghost.kept_in != slot ||
		       world.ghost.rotten[slot],
	       "the model that was confirmed last is changed");
}

static int erase(void *context, uint32_t offset, uint32_t bytes)
{
	const int slot = (int)(uintptr_t)context;
	const bool cut = ++operation == cut_at;

	demand(unit_at(context, offset) == bytes, "not an erase unit");
	check_place(slot, offset, true);
	for (uint32_t i = 0; i < bytes; i++) {
		uint8_t *byte = &world.content[slot][offset + i];
		uint8_t *unit = &world.units[slot][(offset + i) / kind->write_bytes];

		*byte = cut ? torn_byte(*byte, 0xff, i, bytes) : 0xff;
		if (!cut || tear == 3) {
			*unit = UNIT_ERASED;
		} else if (tear != 0 && is_touched(i, bytes)) {
			*unit = UNIT_TORN;
		}
	}
	mirror((uint32_t)slot, offset, bytes);
	if (cut) {
		longjmp(power_failure, 1);
	}
	return 0;
}

static int write(void *context, uint32_t offset, const void *data, uint32_t bytes)
{
	const int slot = (int)(uintptr_t)context;
	const bool is_mark = offset >= slot_bytes - marks_bytes(&world.slots.region[slot]);
	const bool cut = ++operation == cut_at;
	bool touched = false;

	demand(offset % kind->write_bytes == 0u && bytes % kind->write_bytes == 0u &&
		       offset + bytes <= slot_bytes,
	       "not a write unit");
	check_place(slot, offset, false);
	for (uint32_t i = 0; i < bytes; i++) {
		const uint8_t after = world.content[slot][offset + i] & ((const uint8_t *)data)[i];
		uint8_t *byte = &world.content[slot][offset + i];
		uint8_t *unit = &world.units[slot][(offset + i) / kind->write_bytes];

		if ((offset + i) % kind->write_bytes == 0u && *unit != UNIT_ERASED) {
			demand(is_mark, "part of an image is written without an erase");
			if (kind->once) {
				return -5;
			}
		}
		*byte = cut ? torn_byte(*byte, after, i, bytes) : after;
		touched = touched || !cut || is_touched(i, bytes);
		if ((offset + i + 1u) % kind->write_bytes == 0u) {
			*unit = !touched ? *unit : cut && tear != 3 ? UNIT_TORN : UNIT_WRITTEN;
			touched = false;
		}
	}
	mirror((uint32_t)slot, offset, bytes);
	if (cut) {
		longjmp(power_failure, 1);
	}
	return 0;
}

bool is_readable(int slot, uint32_t offset, uint32_t bytes)
{
	for (uint32_t at = offset; kind->faults && at < offset + bytes; at++) {
		if (world.units[slot][at / kind->write_bytes] == UNIT_TORN) {
			return false;
		}
	}
	return true;
}

/* Called before each check, which reads the header and all that it describes. Sanitizers do not see
 * all of these reads: compilers merge some of them. */
void expect_reads(const void *start, uint32_t bytes)
{
	const int slot = start == world.slots.region[1].memory ? 1 : 0;
	struct container_header header;
	uint32_t end = sizeof(header);

	memcpy(&header, world.content[slot], sizeof(header));
	if (header.magic == MCUBOOT_MAGIC && header.payload_bytes < bytes) {
		end += header.payload_bytes + (uint32_t)sizeof(struct checksum);
	}
	for (uint32_t at = 0; kind->faults && at < end && at < bytes; at += kind->write_bytes) {
		demand(world.units[slot][at / kind->write_bytes] == UNIT_WRITTEN,
		       "the core reads what is erased or half written");
	}
}

static int read(void *context, uint32_t offset, void *data, uint32_t bytes)
{
	const int slot = (int)(uintptr_t)context;

	if (!is_readable(slot, offset, bytes)) {
		return -5;
	}
	memcpy(data, world.content[slot] + offset, bytes);
	return 0;
}

void damage(int slot, uint32_t offset, uint8_t bits)
{
	world.content[slot][offset] ^= bits;
	mirror((uint32_t)slot, offset / kind->write_bytes * kind->write_bytes, kind->write_bytes);
}

/* A stream writes a whole buffer at once. */
static int begin_stream(void *context, uint32_t offset)
{
	(void)unit_at(context, offset);
	memset(world.waiting, 0, sizeof(world.waiting));
	world.waiting_at = offset;
	world.waiting_bytes = 0;
	return 0;
}

static int append_to_stream(void *context, const void *data, uint32_t bytes, bool flush)
{
	const uint32_t at = world.waiting_at, unit = kind->write_bytes;
	uint32_t whole;

	demand(world.waiting_bytes + bytes <= stream.bytes, "more than the buffer holds");
	memcpy(world.waiting + world.waiting_bytes, data, bytes);
	world.waiting_bytes += bytes;
	if (!flush) {
		return 0;
	}
	whole = (world.waiting_bytes + unit - 1u) / unit * unit;
	memset(world.waiting + world.waiting_bytes, 0xff, whole - world.waiting_bytes);
	world.waiting_at += whole;
	world.waiting_bytes = 0;
	return write(context, at, world.waiting, whole);
}

void make_flash(const struct kind *made_of)
{
	kind = made_of;
	slot_bytes = 0;
	for (int i = 0; i < 2; i++) {
		slot_bytes += kind->units[0][i].bytes * kind->units[0][i].count;
	}
	stream = (struct tinyml_flash_stream){begin_stream, append_to_stream, kind->stream_bytes};
	for (uintptr_t i = 0; i < 2; i++) {
		flash[i] = (struct tinyml_flash){
			.erase = erase,
			.write = write,
			.context = (void *)i,
			.write_bytes = kind->write_bytes,
			.stream = kind->stream_bytes != 0u ? &stream : NULL,
			.unit = unit_at,
			.read = kind->faults ? read : NULL,
		};
		if (mapped[i] == NULL) {
			mapped[i] = aligned_alloc(TINYML_SLOT_ALIGNMENT, SLOT_MAX);
		}
		world.slots.region[i] = (struct tinyml_slot_region){
			.memory = kind->faults ? mapped[i] : world.content[i],
			.address = ADDRESS + (uint32_t)i * slot_bytes,
			.bytes = slot_bytes,
			.flash = &flash[i],
		};
	}
}

void blank_flash(void)
{
	memset(world.content, 0xff, sizeof(world.content));
	memset(world.units, UNIT_ERASED, sizeof(world.units));
	mirror_flash();
}
