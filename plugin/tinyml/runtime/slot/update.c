/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Receiving an image into the slot that is not in use. */

#include <string.h>

#include <tinyml/slots.h>

#include "marks.h"

static uint32_t round_down(uint32_t value, uint32_t unit)
{
	return value - value % unit;
}

static uint32_t round_up(uint32_t value, uint32_t unit)
{
	return round_down(value + unit - 1u, unit);
}

static int erase(const struct tinyml_slot_region *region, uint32_t from, uint32_t to)
{
	const struct tinyml_flash *flash = region->flash;

	for (; from < to; from += flash->erase_bytes) {
		if (flash->erase(flash->context, from, flash->erase_bytes) != 0) {
			return TINYML_SLOT_FLASH;
		}
	}
	return 0;
}

static uint32_t marks_sector(const struct tinyml_slot_region *region)
{
	return round_down(region->bytes - marks_bytes(region), region->flash->erase_bytes);
}

static bool marks_are_blank(const struct tinyml_slot_region *region)
{
	for (unsigned int mark = 0; mark < MARK_COUNT; mark++) {
		if (!mark_is_blank(region, mark)) {
			return false;
		}
	}
	return true;
}

/* The end of what was written, at most @a limit. */
static uint32_t written(const struct tinyml_slot_region *region, uint32_t limit)
{
	const uint8_t *memory = region->memory;

	while (limit > 0u && memory[limit - 1u] == 0xffu) {
		limit--;
	}
	return limit;
}

/* What is written at once. */
static uint32_t unit_of(const struct tinyml_flash *flash)
{
	return flash->stream != NULL ? flash->stream->bytes : flash->write_bytes;
}

static bool is_sane(const struct tinyml_slot_region *region)
{
	const struct tinyml_flash *flash = region->flash;
	uint32_t unit = flash != NULL ? unit_of(flash) : 0u;

	return unit != 0u && flash->erase_bytes != 0u && flash->write_bytes != 0u &&
	       flash->write_bytes <= TINYML_FLASH_WRITE_MAX &&
	       (flash->write_bytes & (flash->write_bytes - 1u)) == 0u &&
	       unit % flash->write_bytes == 0u && flash->erase_bytes % unit == 0u &&
	       region->bytes % flash->erase_bytes == 0u && region->bytes > marks_bytes(region);
}

int tinyml_update_begin(struct tinyml_update *update, struct tinyml_slots *slots, uint32_t bytes,
			bool resume)
{
	int index = tinyml_slots_free(slots);
	const struct tinyml_slot_region *region;
	uint32_t from;
	int error;

	update->region = NULL;
	if (index < 0) {
		return index;
	}
	region = &slots->region[index];
	if (!is_sane(region)) {
		return TINYML_SLOT_REGION;
	}
	if (bytes == 0u || bytes > region->bytes - marks_bytes(region)) {
		return TINYML_SLOT_BOUNDS;
	}
	/* Everything is erased before the first byte is written, and no write spans two erase
	 * units. So what is there, if it is the start of the image, was written after it into
	 * erased flash, all but the erase unit in which power failed. */
	from = 0;
	if (resume && marks_are_blank(region)) {
		from = round_down(written(region, marks_sector(region)),
				  region->flash->erase_bytes);
	}
	if (from > 0u && from <= bytes) {
		error = erase(region, from, from + region->flash->erase_bytes);
	} else {
		from = 0;
		/* The marks go first: without them, what is left is no model. */
		error = erase(region, marks_sector(region), region->bytes);
		error = error != 0 ? error : erase(region, 0, marks_sector(region));
	}
	if (error == 0 && region->flash->stream != NULL &&
	    region->flash->stream->begin(region->flash->context, from) != 0) {
		error = TINYML_SLOT_FLASH;
	}
	if (error != 0) {
		return error;
	}
	update->slots = slots;
	update->region = region;
	update->bytes = bytes;
	update->done = from;
	return 0;
}

uint32_t tinyml_update_crc32(const struct tinyml_update *update)
{
	return update->region == NULL ? 0
				      : tinyml_slot_crc32(0, update->region->memory, update->done);
}

/* Put data after what was received, of which @a used bytes wait to be written; with @a flush, write
 * them. */
static int append(struct tinyml_update *update, uint32_t used, const uint8_t *data, uint32_t bytes,
		  bool flush)
{
	const struct tinyml_flash *flash = update->region->flash;

	if (flash->stream != NULL) {
		return flash->stream->append(flash->context, data, bytes, flush);
	}
	memcpy(update->buffer + used, data, bytes);
	if (!flush) {
		return 0;
	}
	memset(update->buffer + used + bytes, 0xff, flash->write_bytes - used - bytes);
	return flash->write(flash->context, update->done - used, update->buffer,
			    flash->write_bytes);
}

int tinyml_update_write(struct tinyml_update *update, const void *data, uint32_t bytes)
{
	const uint8_t *from = data;
	uint32_t unit;

	if (update->region == NULL) {
		return TINYML_SLOT_ORDER;
	}
	if (bytes > update->bytes - update->done) {
		return TINYML_SLOT_BOUNDS;
	}
	unit = unit_of(update->region->flash);
	while (bytes > 0u) {
		uint32_t used = update->done % unit;
		uint32_t count = bytes < unit - used ? bytes : unit - used;
		bool flush = used + count == unit || update->done + count == update->bytes;

		if (append(update, used, from, count, flush) != 0) {
			update->region = NULL; /* what was written is unknown: begin again */
			return TINYML_SLOT_FLASH;
		}
		update->done += count;
		from += count;
		bytes -= count;
		if (flush && update->progress != NULL) {
			update->progress(update);
		}
	}
	return 0;
}

int tinyml_update_finish(struct tinyml_update *update)
{
	const struct tinyml_slot_region *region = update->region;
	struct tinyml_slots *slots = update->slots;
	struct tinyml_slot_region image;
	int error;

	if (region == NULL || update->done != update->bytes) {
		return TINYML_SLOT_ORDER;
	}
	update->region = NULL;
	image = *region;
	image.bytes = round_up(update->bytes, region->flash->write_bytes);
	error = tinyml_slot_check(slots->slot, &image, slots->trust);
	error = error != 0 ? error : tinyml_slots_newer(slots, region);
	return error != 0 ? error : set_mark(region, MARK_COMPLETE, 1);
}
