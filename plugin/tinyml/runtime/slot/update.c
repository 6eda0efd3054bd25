/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Receiving an image into the slot that is not in use. */

#include <string.h>

#include <tinyml/slots.h>

#include "flash.h"
#include "marks.h"

static bool update_marks_are_blank(const struct tinyml_slot_region *region)
{
	uint32_t bytes = marks_bytes(region);

	return flash_is_blank(region, region->bytes - bytes, bytes);
}

/* Where to go on after an interrupted update: the erase unit with the last byte that is not 0xff.
 * Data may end with 0xff, so more may have been written after it. */
static uint32_t update_resumed_at(const struct tinyml_slot_region *region)
{
	uint32_t end = region->bytes - marks_bytes(region);

	while (end >= FLASH_CHUNK && flash_is_blank(region, end - FLASH_CHUNK, FLASH_CHUNK)) {
		end -= FLASH_CHUNK;
	}
	return end == 0u ? 0u : flash_unit_start(region, end - 1u);
}

/* The marks go first: without them, what is left is no model. */
static int update_erase_all(const struct tinyml_slot_region *region)
{
	uint32_t marks = flash_unit_start(region, region->bytes - marks_bytes(region));
	int error = flash_erase(region, marks, region->bytes);

	return error != 0 ? error : flash_erase(region, 0, marks);
}

/* 0 if the update may go on. */
static int update_check_current(const struct tinyml_update *update)
{
	if (update->region == NULL) {
		return TINYML_SLOT_ORDER;
	}
	/* The region may have become the one in use, by another update or by another model. */
	return update->number == update->slots->updates &&
			       tinyml_slots_free(update->slots) ==
				       (int)(update->region - update->slots->region)
		       ? 0
		       : TINYML_SLOT_OVERTAKEN;
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
	if (!flash_is_sane(region)) {
		return TINYML_SLOT_REGION;
	}
	if (bytes == 0u || bytes > marks_room(region)) {
		return TINYML_SLOT_BOUNDS;
	}
	slots->updates++;
	/* Everything is erased before the first byte is written, and no write spans two erase
	 * units. So what is there, if it is the start of the image, was written into erased flash,
	 * all but the erase unit in which power failed. That one and all after it are erased again,
	 * whatever they read as: flash with ECC takes no second write, not even of 0xff. */
	from = resume && update_marks_are_blank(region) ? update_resumed_at(region) : 0u;
	if (from > 0u && from <= bytes) {
		error = flash_erase(region, from, region->bytes);
	} else {
		from = 0;
		error = update_erase_all(region);
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
	update->number = slots->updates;
	update->bytes = bytes;
	update->done = from;
	return 0;
}

uint32_t tinyml_update_crc32(const struct tinyml_update *update)
{
	uint8_t chunk[FLASH_CHUNK];
	uint32_t crc = 0;

	if (update->region == NULL) {
		return 0;
	}
	for (uint32_t at = 0; at < update->done; at += FLASH_CHUNK) {
		uint32_t left = update->done - at;
		uint32_t count = left < FLASH_CHUNK ? left : FLASH_CHUNK;

		if (flash_read(update->region, at, chunk, count) != 0) {
			return ~crc; /* that of nothing that begins like this */
		}
		crc = tinyml_slot_crc32(crc, chunk, count);
	}
	return crc;
}

/* Put data after what was received, of which @a used bytes wait to be written; with @a flush, write
 * them. */
static int update_append(struct tinyml_update *update, uint32_t used, const uint8_t *data,
			 uint32_t bytes, bool flush)
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
	int error = update_check_current(update);

	if (error != 0) {
		return error;
	}
	if (bytes > update->bytes - update->done) {
		return TINYML_SLOT_BOUNDS;
	}
	unit = flash_write_unit(update->region->flash);
	while (bytes > 0u) {
		uint32_t used = update->done % unit;
		uint32_t count = bytes < unit - used ? bytes : unit - used;
		bool flush = used + count == unit || update->done + count == update->bytes;

		if (update_append(update, used, from, count, flush) != 0) {
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

	error = update_check_current(update);
	if (error == 0 && update->done != update->bytes) {
		error = TINYML_SLOT_ORDER;
	}
	if (error != 0) {
		return error;
	}
	update->region = NULL;
	image = *region;
	image.bytes = update->bytes + (0u - update->bytes) % region->flash->write_bytes;
	error = tinyml_slot_check(slots->slot, &image, slots->trust);
	error = error != 0 ? error : tinyml_slots_newer(slots, region);
	return error != 0 ? error : set_mark(region, MARK_COMPLETE, 1);
}
