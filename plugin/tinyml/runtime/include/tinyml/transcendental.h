/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Functions in fixed point, equal bit for bit to those of the TensorFlow Lite reference kernels.
 */

#ifndef TINYML_TRANSCENDENTAL_H_
#define TINYML_TRANSCENDENTAL_H_

#include <stdint.h>

#include <tinyml/fixed_point.h>

static inline int32_t tinyml_leading_zeros(uint32_t x)
{
	return x == 0u ? 32 : __builtin_clz(x);
}

/** x * 2^bits, saturated. */
static inline int32_t tinyml_saturating_shift_left(int32_t x, int32_t bits)
{
	const int64_t wide = (int64_t)x * (INT64_C(1) << bits);

	return wide > INT32_MAX ? INT32_MAX : wide < INT32_MIN ? INT32_MIN : (int32_t)wide;
}

/** exp(a) for a <= 0 in Q5.26; the result is in Q0.31. */
static inline int32_t tinyml_exp_q5(int32_t a)
{
	static const int32_t exp_of_minus_powers[] = {
		1672461947, /* exp(-1/4) */
		1302514674, /* exp(-1/2) */
		790015084,  /* exp(-1) */
		290630308,  /* exp(-2) */
		39332535,   /* exp(-4) */
		720401,     /* exp(-8) */
		242,        /* exp(-16) */
	};
	const int32_t exp_minus_eighth = 1895147668;
	const int32_t third = 715827883;
	const int32_t quarter = INT32_C(1) << 24;
	const int32_t rest = (a & (quarter - 1)) - quarter;
	const int32_t x = rest * 32 + (INT32_C(1) << 28); /* around -1/8, Q0.31 */
	const int32_t x2 = tinyml_doubling_high_multiply(x, x);
	const int32_t x3 = tinyml_doubling_high_multiply(x2, x);
	const int32_t x4 = tinyml_doubling_high_multiply(x2, x2);
	const int32_t high = tinyml_rounding_shift_right(x4, 2) + x3;
	const int32_t tail = tinyml_doubling_high_multiply(high, third) + x2;
	const int32_t series = x + tinyml_rounding_shift_right(tail, 1);
	int32_t result = exp_minus_eighth + tinyml_doubling_high_multiply(series, exp_minus_eighth);

	if (a == 0) {
		return INT32_MAX;
	}
	for (int32_t i = 0; i < 7; i++) {
		if (((rest - a) >> (24 + i) & 1) != 0) {
			result = tinyml_doubling_high_multiply(result, exp_of_minus_powers[i]);
		}
	}
	return result;
}

/** 1 / (1 + a) for a in [0, 1), both in Q0.31. */
static inline int32_t tinyml_one_over_one_plus(int32_t a)
{
	const int32_t half = (int32_t)(((int64_t)a + INT32_MAX + 1) / 2);
	/* 48/17 - 32/17 * denominator, then three steps of Newton and Raphson, in Q2.29 */
	int32_t x = 1515870810 + tinyml_doubling_high_multiply(half, -1010580540);

	for (int32_t step = 0; step < 3; step++) {
		const int32_t error = (INT32_C(1) << 29) - tinyml_doubling_high_multiply(half, x);

		x += tinyml_saturating_shift_left(tinyml_doubling_high_multiply(x, error), 2);
	}
	return tinyml_saturating_shift_left(x, 1);
}

/* The same on 16-bit values, for the gates of recurrent layers. */

static inline int32_t tinyml_doubling_high_multiply_s16(int32_t a, int32_t b)
{
	const int32_t product = (a * b + (INT32_C(1) << 14)) >> 15;

	return product > INT16_MAX ? INT16_MAX : product;
}

static inline int32_t tinyml_saturating_shift_left_s16(int32_t x, int32_t bits)
{
	return tinyml_clamp(x * (INT32_C(1) << bits), INT16_MIN, INT16_MAX);
}

/** exp(a) for a <= 0 with integer_bits (1 to 7) before the point; the result is in Q0.15. */
static inline int32_t tinyml_exp_s16(int32_t a, int32_t integer_bits)
{
	static const int16_t exp_of_minus_powers[] = {
		25520, /* exp(-1/4) */
		19875, /* exp(-1/2) */
		12055, /* exp(-1) */
		4435,  /* exp(-2) */
		600,   /* exp(-4) */
		11,    /* exp(-8) */
		0,     /* exp(-16) */
	};
	const int32_t exp_minus_eighth = 28918;
	const int32_t third = 10923;
	const int32_t fraction_bits = 15 - integer_bits;
	const int32_t quarter = INT32_C(1) << (fraction_bits - 2);
	const int32_t rest = (a & (quarter - 1)) - quarter;
	const int32_t x = tinyml_saturating_shift_left_s16(rest, integer_bits) + (1 << 12);
	const int32_t x2 = tinyml_doubling_high_multiply_s16(x, x);
	const int32_t x3 = tinyml_doubling_high_multiply_s16(x2, x);
	const int32_t x4 = tinyml_doubling_high_multiply_s16(x2, x2);
	const int32_t high = tinyml_rounding_shift_right(x4, 2) + x3;
	const int32_t tail = tinyml_doubling_high_multiply_s16(high, third) + x2;
	const int32_t series = x + tinyml_rounding_shift_right(tail, 1);
	int32_t result =
		exp_minus_eighth + tinyml_doubling_high_multiply_s16(series, exp_minus_eighth);

	if (a == 0) {
		return INT16_MAX;
	}
	if (integer_bits > 5 && a < -(INT32_C(1) << (20 - integer_bits))) {
		return 0;
	}
	for (int32_t i = 0; i < 7 && i - 2 < integer_bits; i++) {
		if (((rest - a) >> (fraction_bits - 2 + i) & 1) != 0) {
			result = tinyml_doubling_high_multiply_s16(result, exp_of_minus_powers[i]);
		}
	}
	return result;
}

/** 2 / (1 + a) for a in [0, 1] in Q0.15; the result is in Q2.13. */
static inline int32_t tinyml_twice_one_over_one_plus_s16(int32_t a)
{
	const int32_t half = (a + INT16_MAX + 1) / 2;
	int32_t x = 23130 + tinyml_doubling_high_multiply_s16(half, -15420);

	for (int32_t step = 0; step < 3; step++) {
		const int32_t error = (1 << 13) - tinyml_doubling_high_multiply_s16(half, x);

		x += tinyml_saturating_shift_left_s16(tinyml_doubling_high_multiply_s16(x, error),
						      2);
	}
	return x;
}

#endif /* TINYML_TRANSCENDENTAL_H_ */
