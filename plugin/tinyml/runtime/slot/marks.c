/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "marks.h"

#include <string.h>

#include "flash.h"

#define MARK_BYTES FLASH_CHUNK

/* Different in every bit or so from erased flash and from each other's halves. */
static const uint8_t content[MARK_BYTES] = {0x54, 0x4d, 0x53, 0x4c, 0xa5, 0x3c, 0x96, 0x0f,
					    0xab, 0xb2, 0xac, 0xb3, 0x5a, 0xc3, 0x69, 0xf0};

static uint32_t marks_stride(const struct tinyml_slot_region *region)
{
	uint32_t unit = region->flash->write_bytes;

	return unit > MARK_BYTES ? unit : MARK_BYTES;
}

uint32_t marks_bytes(const struct tinyml_slot_region *region)
{
	return MARK_COUNT * marks_stride(region);
}

uint32_t marks_room(const struct tinyml_slot_region *region)
{
	uint32_t room = region->bytes - marks_bytes(region);

	/* Where erased flash cannot be read, a failure while the marks are erased must not make an
	 * image unreadable that they still call complete. */
	return region->flash->read != NULL ? flash_unit_start(region, room) : room;
}

static uint32_t marks_offset_of(const struct tinyml_slot_region *region, unsigned int mark)
{
	return region->bytes - marks_bytes(region) + mark * marks_stride(region);
}

bool mark_is_blank(const struct tinyml_slot_region *region, unsigned int mark)
{
	return flash_is_blank(region, marks_offset_of(region, mark), marks_stride(region));
}

bool mark_is_set(const struct tinyml_slot_region *region, unsigned int mark)
{
	uint8_t found[MARK_BYTES];

	return flash_read(region, marks_offset_of(region, mark), found, MARK_BYTES) == 0 &&
	       memcmp(found, content, MARK_BYTES) == 0;
}

bool is_confirmed(const struct tinyml_slot_region *region)
{
	for (unsigned int i = 0; i < TINYML_SLOT_TRIALS; i++) {
		if (mark_is_set(region, MARK_CONFIRMED + i)) {
			return true;
		}
	}
	return false;
}

unsigned int trials(const struct tinyml_slot_region *region)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < TINYML_SLOT_TRIALS; i++) {
		count += mark_is_blank(region, MARK_TRIED + i) ? 0u : 1u;
	}
	return count;
}

int set_mark(const struct tinyml_slot_region *region, unsigned int mark, unsigned int count)
{
	const struct tinyml_flash *flash = region->flash;
	uint8_t unit[TINYML_FLASH_WRITE_MAX > MARK_BYTES ? TINYML_FLASH_WRITE_MAX : MARK_BYTES];

	memset(unit, 0xff, sizeof(unit));
	memcpy(unit, content, MARK_BYTES);
	for (unsigned int i = mark; i < mark + count; i++) {
		if (mark_is_blank(region, i) &&
		    flash->write(flash->context, marks_offset_of(region, i), unit,
				 marks_stride(region)) == 0 &&
		    mark_is_set(region, i)) {
			return 0;
		}
	}
	return TINYML_SLOT_FLASH;
}
