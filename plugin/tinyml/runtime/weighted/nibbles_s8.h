/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Weights of four bits, from -8 to 7, as kernels that use them more than once unpack them: eight in
 * four bytes, of which the lower halves are weights 0 to 3 and the upper halves weights 4 to 7. The
 * last ones, if they are not eight, are two in a byte, the lower half first.
 */

#ifndef TINYML_NIBBLES_S8_H_
#define TINYML_NIBBLES_S8_H_

#include <stdint.h>
#include <string.h>

/** Elements that are unpacked at most, and bytes of the memory for them. */
#define TINYML_NIBBLES      64
#define TINYML_NIBBLE_BYTES (TINYML_NIBBLES + 4)

/** Sign-extend four bytes whose upper halves are 0. */
static inline uint32_t tinyml_extend_nibbles(uint32_t four)
{
	return ((four ^ 0x08080808u) + 0x78787878u) ^ 0x80808080u;
}

/** Unpack `count` weights; up to a byte after them is written as well. */
static inline void tinyml_unpack_nibbles(int8_t *to, const int8_t *from, int32_t count)
{
	for (; count >= 8; count -= 8, from += 4, to += 8) {
		uint32_t word, four;

		memcpy(&word, from, sizeof(word));
		four = tinyml_extend_nibbles(word & 0x0f0f0f0fu);
		memcpy(to, &four, sizeof(four));
		four = tinyml_extend_nibbles(word >> 4 & 0x0f0f0f0fu);
		memcpy(to + 4, &four, sizeof(four));
	}
	for (; count > 0; count -= 2, from++, to += 2) {
		to[0] = (int8_t)((int8_t)((uint32_t)*from << 4) >> 4);
		to[1] = (int8_t)(*from >> 4);
	}
}

/** Bytes that `count` weights take. */
static inline int32_t tinyml_nibble_bytes(int32_t count)
{
	return (count + 1) / 2;
}

#endif /* TINYML_NIBBLES_S8_H_ */
