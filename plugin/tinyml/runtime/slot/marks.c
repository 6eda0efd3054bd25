/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "marks.h"

#include <string.h>

#define MARK_BYTES 16u

/* Different in every bit or so from erased flash and from each other's halves. */
static const uint8_t content[MARK_BYTES] = {0x54, 0x4d, 0x53, 0x4c, 0xa5, 0x3c, 0x96, 0x0f,
					    0xab, 0xb2, 0xac, 0xb3, 0x5a, 0xc3, 0x69, 0xf0};

static uint32_t stride(const struct tinyml_slot_region *region)
{
	uint32_t unit = region->flash->write_bytes;

	return unit > MARK_BYTES ? unit : MARK_BYTES;
}

uint32_t marks_bytes(const struct tinyml_slot_region *region)
{
	return MARK_COUNT * stride(region);
}

static uint32_t offset_of(const struct tinyml_slot_region *region, unsigned int mark)
{
	return region->bytes - marks_bytes(region) + mark * stride(region);
}

static const uint8_t *find(const struct tinyml_slot_region *region, unsigned int mark)
{
	return (const uint8_t *)region->memory + offset_of(region, mark);
}

bool mark_is_blank(const struct tinyml_slot_region *region, unsigned int mark)
{
	const uint8_t *found = find(region, mark);

	for (uint32_t i = 0; i < stride(region); i++) {
		if (found[i] != 0xffu) {
			return false;
		}
	}
	return true;
}

bool mark_is_set(const struct tinyml_slot_region *region, unsigned int mark)
{
	return memcmp(find(region, mark), content, MARK_BYTES) == 0;
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
		    flash->write(flash->context, offset_of(region, i), unit, stride(region)) == 0 &&
		    mark_is_set(region, i)) {
			return 0;
		}
	}
	return TINYML_SLOT_FLASH;
}
