/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Two filters in one int16: h = 256 * p + q, where p and q are weights of neighbouring filters.
 *
 * With A += h * x and Q += q * x, where q is the sign-extended low byte of h, A is 256 * P + Q in
 * the end, so P = (A - Q) / 256. Both products come from one weight word, which saves one of every
 * two unpacking instructions. A may overflow and wrap around on the way; only P must be within
 * 24 bits, and h within 16. The compiler proves both for every layer that uses these kernels.
 */

#ifndef TINYML_PAIRS_S8_H_
#define TINYML_PAIRS_S8_H_

#include <stdint.h>

/** A at the start: both biases. */
static inline int32_t tinyml_pair_begin(int32_t bias_p, int32_t bias_q)
{
	return (int32_t)(((uint32_t)bias_p << 8) + (uint32_t)bias_q);
}

/** P in the end. */
static inline int32_t tinyml_pair_first(int32_t a, int32_t q)
{
	return (int32_t)((uint32_t)a - (uint32_t)q) >> 8;
}

#endif /* TINYML_PAIRS_S8_H_ */
