/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * From accumulators to int8 outputs, in few instructions: layers with short dot products spend much
 * of their time here. Models from TensorFlow Lite round twice, as tinyml_rescale() does; others
 * round once, as tinyml_rescale_once() does. Both cost the same.
 */

#ifndef TINYML_OUTPUT_S8_H_
#define TINYML_OUTPUT_S8_H_

#include <stdbool.h>
#include <stdint.h>

#include <tinyml/fixed_point.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weights are laid out for little-endian processors"
#endif

struct tinyml_output {
	int32_t nudge; /* doubled addend of the first rounding: 2^31, or 0 if there is one rounding
			*/
	int32_t sign;  /* all ones if negative halves round away from zero, else 0 */
	int32_t twice_zero; /* 2 * zero point + 1, added before the last halving */
	int32_t low;
	int32_t high;
	bool narrow; /* the limits are narrower than those of int8 */
};

static inline struct tinyml_output tinyml_output(bool once, int32_t zero, int32_t low, int32_t high)
{
	return (struct tinyml_output){
		.nudge = once ? 0 : INT32_MIN,
		.sign = once ? 0 : -1,
		.twice_zero = 2 * zero + 1,
		.low = low,
		.high = high,
		.narrow = low > INT8_MIN || high < INT8_MAX,
	};
}

/* x / 2, limited to int8. */
static inline int32_t tinyml_halve_s8(int32_t x)
{
#if defined(__ARM_FEATURE_SAT) && __ARM_FEATURE_SAT
	__asm__("ssat %0, #8, %1, asr #1" : "=r"(x) : "r"(x));
	return x;
#else
	return tinyml_clamp(x >> 1, INT8_MIN, INT8_MAX);
#endif
}

/* (acc * multiplier + nudge / 2) >> 31, for multipliers of at least 2^30, as all factors have. */
static inline int32_t tinyml_scale(int32_t acc, int32_t multiplier, int32_t nudge)
{
#if defined(__arm__) && __ARM_ARCH >= 7 && (defined(__thumb2__) || !defined(__thumb__))
	/* Doubled, the multiplier is an unsigned factor f of 32 bits, or f - 2^32 as a signed
	 * number; and acc * f = acc * (f - 2^32) + acc * 2^32. So the result is the upper half of a
	 * sum, without a shift. */
	const int32_t factor = (int32_t)((uint32_t)multiplier << 1);
	int32_t low = nudge, high = acc;

	__asm__("smlal %0, %1, %2, %3" : "+r"(low), "+r"(high) : "r"(acc), "r"(factor));
	return high;
#elif defined(__thumb__)
	/* Armv6-M and Armv8-M Baseline multiply 32 bits by 32 to 32: four products of halves. The
	 * lower half of the smallest does not reach the result. */
	const int32_t acc_high = acc >> 16, high = multiplier >> 16;
	const uint32_t acc_low = (uint16_t)acc, low = (uint16_t)multiplier;
	const int32_t a = acc_high * (int32_t)low + (int32_t)(acc_low * low >> 16);
	const uint32_t b = acc_low * (uint32_t)high;
	const uint32_t middle = (uint32_t)(uint16_t)a + (uint16_t)b + ((uint32_t)nudge >> 17);

	return 2 * (acc_high * high + (a >> 16) + (int32_t)(b >> 16)) + (int32_t)(middle >> 15);
#else
	return (int32_t)((tinyml_wide_product(acc, multiplier) + (uint32_t)nudge / 2u) >> 31);
#endif
}

/* Factors of one half and more are rare, so their code is kept out of line. Results are limited, so
 * that they can be doubled. */
__attribute__((noinline, unused)) static int32_t
tinyml_rescale_large(int32_t acc, int32_t multiplier, int32_t shift, bool once)
{
	const int32_t scaled = once ? tinyml_rescale_once(acc, multiplier, shift)
				    : tinyml_rescale(acc, multiplier, shift);

	return tinyml_saturate_s16(scaled);
}

static inline int8_t tinyml_output_s8(int32_t acc, int32_t multiplier, int32_t shift,
				      const struct tinyml_output *to)
{
	int32_t q;

	if (__builtin_expect(shift < 0, 1) != 0) {
		q = tinyml_scale(acc, multiplier, to->nudge);
		q += (q >> 31) & to->sign;
		q = (q >> ~shift) + to->twice_zero;
	} else {
		q = 2 * tinyml_rescale_large(acc, multiplier, shift, to->sign == 0) +
		    to->twice_zero;
	}
	q = tinyml_halve_s8(q);
	if (to->narrow) {
		q = tinyml_clamp(q, to->low, to->high);
	}
	return (int8_t)q;
}

#endif /* TINYML_OUTPUT_S8_H_ */
