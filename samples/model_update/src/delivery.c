/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "delivery.h"

#include <string.h>

static const uint8_t digits_1[] = {
#include "digits_1.inc"
};
static const uint8_t digits_2[] = {
#include "digits_2.inc"
};
static const uint8_t forged_3[] = {
#include "forged_3.inc"
};

/* The table at the start of a .tmodel file. */
struct entry {
	char slot[24];
	uint32_t address;
	uint32_t position;
	uint32_t bytes;
};

struct delivery order(enum pack pack, uint32_t address)
{
	static const uint8_t *const packs[] = {digits_1, digits_2, forged_3};
	const uint8_t *content = packs[pack];
	struct entry entry;
	uint32_t count;

	memcpy(&count, content + 8, sizeof(count));
	for (uint32_t i = 0; i < count; i++) {
		memcpy(&entry, content + 12 + i * sizeof(entry), sizeof(entry));
		if (entry.address == address) {
			return (struct delivery){content + entry.position, entry.bytes};
		}
	}
	return (struct delivery){0};
}
