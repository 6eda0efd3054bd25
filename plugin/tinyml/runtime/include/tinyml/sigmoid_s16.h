/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Sigmoid and tanh of int16 tensors: a table of 65536 * sigmoid(i / 24), interpolated. */

#ifndef TINYML_SIGMOID_S16_H_
#define TINYML_SIGMOID_S16_H_

#include <stdint.h>

/** The table at x / 2^bits, times 2^bits; largest where the table ends. */
static inline int32_t tinyml_sigmoid_interpolate(uint32_t x, uint32_t bits, uint32_t largest,
						 const uint16_t *table)
{
	const uint32_t i = x >> bits;

	if (i >= 255u) {
		return (int32_t)largest;
	}

	const uint32_t a = table[i];
	const uint32_t b = table[i + 1u];

	return (int32_t)((a << bits) + (x & ((1u << bits) - 1u)) * (b - a));
}

/** 32768 * sigmoid(x / 12288). */
static inline int16_t tinyml_sigmoid_s16_by_table(int32_t x, const uint16_t *table)
{
	const uint32_t size = x < 0 ? 0u - (uint32_t)x : (uint32_t)x;
	const int32_t v = tinyml_sigmoid_interpolate(size, 9u, 0x7FFFu << 10, table);
	const int32_t half = INT32_C(1) << 9;

	return (int16_t)((x >= 0 ? v + half : (INT32_C(1) << 25) - v + half - 1) >> 10);
}

/** 32768 * tanh(x / 12288). */
static inline int16_t tinyml_tanh_s16_by_table(int32_t x, const uint16_t *table)
{
	const uint32_t size = x < 0 ? 0u - (uint32_t)x : (uint32_t)x;
	const int32_t v = tinyml_sigmoid_interpolate(size, 8u, 0xFFFFu << 8, table);
	const int32_t one = INT32_C(1) << 23;

	return (int16_t)((x >= 0 ? v - one + 128 : -v + one + 127) >> 8);
}

#endif /* TINYML_SIGMOID_S16_H_ */
