/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** CRC-32 as in Ethernet and zlib, with a table of 16 entries. For TINYML_CHECK_WEIGHTS. */

#ifndef TINYML_CRC32_H_
#define TINYML_CRC32_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The CRC of data that follows other data, whose CRC is `crc`; begin with 0. */
static inline uint32_t tinyml_crc32(uint32_t crc, const void *data, size_t size)
{
	static const uint32_t table[16] = {
		0x00000000u, 0x1db71064u, 0x3b6e20c8u, 0x26d930acu, 0x76dc4190u, 0x6b6b51f4u,
		0x4db26158u, 0x5005713cu, 0xedb88320u, 0xf00f9344u, 0xd6d6a3e8u, 0xcb61b38cu,
		0x9b64c2b0u, 0x86d3d2d4u, 0xa00ae278u, 0xbdbdf21cu,
	};
	const uint8_t *bytes = (const uint8_t *)data;

	/* Hide the address, or the compiler could compute the result from the constants it knows.
	 */
	__asm__("" : "+r"(bytes));
	crc = ~crc;
	for (size_t i = 0; i < size; i++) {
		crc ^= bytes[i];
		crc = crc >> 4 ^ table[crc & 15u];
		crc = crc >> 4 ^ table[crc & 15u];
	}
	return ~crc;
}

#ifdef __cplusplus
}
#endif

#endif /* TINYML_CRC32_H_ */
