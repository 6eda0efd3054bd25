/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "flash.h"

#include <string.h>

#include "marks.h"

/* The bytes of the erase unit that starts at an offset. */
static uint32_t flash_unit_bytes(const struct tinyml_flash *flash, uint32_t offset)
{
	return flash->unit != NULL ? flash->unit(flash->context, offset) : flash->erase_bytes;
}

uint32_t flash_write_unit(const struct tinyml_flash *flash)
{
	return flash->stream != NULL ? flash->stream->bytes : flash->write_bytes;
}

bool flash_is_sane(const struct tinyml_slot_region *region)
{
	const struct tinyml_flash *flash = region->flash;
	uint32_t at = 0, unit, written;

	if (flash == NULL || flash->erase == NULL || flash->write == NULL ||
	    flash->write_bytes == 0u || flash->write_bytes > TINYML_FLASH_WRITE_MAX ||
	    (flash->write_bytes & (flash->write_bytes - 1u)) != 0u) {
		return false;
	}
	written = flash_write_unit(flash);
	if (written == 0u || written % flash->write_bytes != 0u) {
		return false;
	}
	/* The region consists of whole erase units, and these of whole buffers of a stream. */
	while (at < region->bytes) {
		unit = flash_unit_bytes(flash, at);
		if (unit == 0u || unit % FLASH_CHUNK != 0u || unit % written != 0u ||
		    unit > region->bytes - at) {
			return false;
		}
		at += unit;
	}
	return region->bytes > marks_bytes(region) && marks_room(region) > 0u;
}

uint32_t flash_unit_start(const struct tinyml_slot_region *region, uint32_t offset)
{
	uint32_t at = 0, next = flash_unit_bytes(region->flash, 0);

	while (next <= offset) {
		at = next;
		next += flash_unit_bytes(region->flash, at);
	}
	return at;
}

int flash_erase(const struct tinyml_slot_region *region, uint32_t from, uint32_t to)
{
	const struct tinyml_flash *flash = region->flash;
	uint32_t bytes;

	for (; from < to; from += bytes) {
		bytes = flash_unit_bytes(flash, from);
		if (flash->erase(flash->context, from, bytes) != 0) {
			return TINYML_SLOT_FLASH;
		}
	}
	return 0;
}

int flash_read(const struct tinyml_slot_region *region, uint32_t offset, void *data, uint32_t bytes)
{
	if (region->flash->read != NULL) {
		return region->flash->read(region->flash->context, offset, data, bytes);
	}
	memcpy(data, (const uint8_t *)region->memory + offset, bytes);
	return 0;
}

bool flash_is_blank(const struct tinyml_slot_region *region, uint32_t offset, uint32_t bytes)
{
	uint8_t chunk[FLASH_CHUNK];

	for (uint32_t end = offset + bytes; offset < end; offset += FLASH_CHUNK) {
		if (flash_read(region, offset, chunk, FLASH_CHUNK) != 0) {
			return false;
		}
		for (uint32_t i = 0; i < FLASH_CHUNK; i++) {
			if (chunk[i] != 0xffu) {
				return false;
			}
		}
	}
	return true;
}
