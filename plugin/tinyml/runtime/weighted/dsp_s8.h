/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * What the kernels for cores with DSP instructions share. They multiply pairs: SXTB16 makes two
 * int16 of a word's even bytes, or of its odd ones, and SMLAD multiplies and adds two at once.
 */

#ifndef TINYML_DSP_S8_H_
#define TINYML_DSP_S8_H_

#include <arm_acle.h>
#include <stdint.h>
#include <string.h>

#include "output_s8.h"

static inline uint32_t tinyml_load_word(const void *p)
{
	uint32_t word;

	memcpy(&word, p, sizeof(word)); /* one load; the address need not be aligned */
	return word;
}

/* Bytes 0 and 2 of a word, sign-extended into its two halves. */
static inline int16x2_t tinyml_even_bytes(uint32_t word)
{
	return __sxtb16((int8x4_t)word);
}

/* Bytes 1 and 3: the compiler does not merge the rotation by itself. */
static inline int16x2_t tinyml_odd_bytes(uint32_t word)
{
	int16x2_t halves;

	__asm__("sxtb16 %0, %1, ror #8" : "=r"(halves) : "r"(word));
	return halves;
}

/* acc * factor / 2^32, rounded or not, where the factor has 32 bits and the uppermost is set: with
 * its sign it is f - 2^32, and acc * f = acc * (f - 2^32) + acc * 2^32.
 */
static inline int32_t tinyml_times(int32_t acc, int32_t factor, bool once)
{
	int32_t high;

	if (once) {
		__asm__("smmla %0, %1, %2, %1" : "=r"(high) : "r"(acc), "r"(factor));
	} else {
		__asm__("smmlar %0, %1, %2, %1" : "=r"(high) : "r"(acc), "r"(factor));
	}
	return high;
}

/* The sum of a channel as an output; `exponent` is one less than what it is shifted by. */
static inline int32_t tinyml_output_dsp(int32_t acc, int32_t factor, int32_t exponent, bool once,
					int32_t twice_zero)
{
	int32_t q = tinyml_times(acc, factor, once);

	if (!once) {
		q += q >> 31; /* negative halves round away from zero */
	}
	return tinyml_halve_s8((q >> exponent) + twice_zero);
}

#endif /* TINYML_DSP_S8_H_ */
