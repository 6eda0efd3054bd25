/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/slot.h>

/* Half a byte at a time: a table of 64 bytes instead of 1024. */
uint32_t tinyml_slot_crc32(uint32_t crc, const void *data, uint32_t bytes)
{
	static const uint32_t table[16] = {
		0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
		0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
		0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
	};
	const uint8_t *at = data;

	crc = ~crc;
	for (uint32_t i = 0; i < bytes; i++) {
		crc ^= at[i];
		crc = (crc >> 4) ^ table[crc & 15u];
		crc = (crc >> 4) ^ table[crc & 15u];
	}
	return ~crc;
}
