/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* CRC-32 as in <tinyml/crc32.h>, but without a table: it is computed rarely. */

#ifndef TINYML_ADAPT_CRC_H_
#define TINYML_ADAPT_CRC_H_

#include <stddef.h>
#include <stdint.h>

/** Go on with a CRC that starts as UINT32_MAX and is inverted at its end. */
static inline uint32_t crc_more(uint32_t crc, const void *data, size_t bytes)
{
	const uint8_t *from = data;

	while (bytes-- != 0u) {
		crc ^= *from++;
		for (uint32_t bit = 0; bit < 8u; bit++) {
			crc = crc >> 1 ^ (0xedb88320u & (0u - (crc & 1u)));
		}
	}
	return crc;
}

#endif /* TINYML_ADAPT_CRC_H_ */
