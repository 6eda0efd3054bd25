/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Shared by the kernels for cores with DSP instructions. They multiply pairs: SXTB16 sign-extends
 * the even or the odd bytes of a word to two int16, and SMLAD multiplies and adds two pairs at
 * once.
 */

#ifndef TINYML_DSP_S8_H_
#define TINYML_DSP_S8_H_

#include <arm_acle.h>
#include <stdint.h>
#include <string.h>

#include "assembly.h"
#include "output_s8.h"

static inline uint32_t tinyml_load_word(const void *p)
{
	uint32_t word;

	memcpy(&word, p, sizeof(word)); /* one load; the address need not be aligned */
	return word;
}

static inline uint32_t tinyml_load_half(const void *p)
{
	uint16_t half;

	memcpy(&half, p, sizeof(half));
	return half;
}

/* Bytes 0 and 2 of a word, sign-extended into its two halves. */
static inline int16x2_t tinyml_even_bytes(uint32_t word)
{
	return __sxtb16((int8x4_t)word);
}

/* Bytes 1 and 3. In assembly, because compilers do not merge the rotation. */
static inline int16x2_t tinyml_odd_bytes(uint32_t word)
{
	int16x2_t halves;

	__asm__("sxtb16 %0, %1, ror #8" : "=r"(halves) : "r"(word));
	return halves;
}

/* acc * f / 2^32, rounded unless `once`, for an unsigned factor f of 32 bits whose highest bit is
 * set. As a signed number, `factor` is f - 2^32, and acc * f = acc * (f - 2^32) + acc * 2^32.
 */
static inline int32_t tinyml_multiply_high(int32_t acc, int32_t factor, bool once)
{
	int32_t high;

	if (once) {
		__asm__("smmla %0, %1, %2, %1" : "=r"(high) : "r"(acc), "r"(factor));
	} else {
		__asm__("smmlar %0, %1, %2, %1" : "=r"(high) : "r"(acc), "r"(factor));
	}
	return high;
}

/* The output for the sum of a channel; `exponent` is the shift to the right less one. */
static inline int32_t tinyml_output_dsp(int32_t acc, int32_t factor, int32_t exponent, bool once,
					int32_t twice_zero)
{
	int32_t q = tinyml_multiply_high(acc, factor, once);

	if (!once) {
		q += q >> 31; /* negative halves round away from zero */
	}
	return tinyml_halve_s8((q >> exponent) + twice_zero);
}

#endif /* TINYML_DSP_S8_H_ */
