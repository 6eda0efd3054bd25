/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Integer arithmetic of the TensorFlow Lite reference kernels, bit for bit. */

#ifndef TINYML_FIXED_POINT_H_
#define TINYML_FIXED_POINT_H_

#include <stdint.h>

/** a * b in 64 bits. */
static inline int64_t tinyml_wide_product(int32_t a, int32_t b)
{
	int64_t product = (int64_t)a * b;

#if defined(__clang__) && defined(__riscv_v_elen) && __riscv_v_elen < 64
	/* Clang 19 crashes when it vectorises loops with such products for vectors of 32-bit
	 * elements. It does not vectorise a loop with this in it. */
	__asm__("" : "+r"(product));
#endif
	return product;
}

/** (a * b * 2) >> 32, rounded. Callers never pass INT32_MIN twice, the only case that overflows. */
static inline int32_t tinyml_doubling_high_multiply(int32_t a, int32_t b)
{
	return (int32_t)((tinyml_wide_product(a, b) + (INT64_C(1) << 30)) >> 31);
}

/** x / 2^exponent, halves away from zero. */
static inline int32_t tinyml_rounding_shift_right(int32_t x, int32_t exponent)
{
	const int32_t mask = (int32_t)((UINT32_C(1) << exponent) - 1u);
	const int32_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);

	return (x >> exponent) + ((x & mask) > threshold ? 1 : 0);
}

/** x * multiplier * 2^(shift - 31). */
static inline int32_t tinyml_rescale(int32_t x, int32_t multiplier, int32_t shift)
{
	if (shift > 0) {
		x = (int32_t)((uint32_t)x << shift);
	}
	x = tinyml_doubling_high_multiply(x, multiplier);
	if (shift < 0) {
		/* tinyml_rounding_shift_right() without a mask: negative halves must not round up,
		 * so negative numbers are decremented first; ~shift is the exponent less one. */
		x = (((x + (x >> 31)) >> ~shift) + 1) >> 1;
	}
	return x;
}

/** The same, rounded once, halves up: for models that are defined by real arithmetic. Results are
 * less than 2^30 in magnitude: larger ones would be out of the range of int8 and int16 anyway.
 */
static inline int32_t tinyml_rescale_once(int32_t x, int32_t multiplier, int32_t shift)
{
	const int32_t exponent = 31 - shift; /* 1 to 62 */

	if (shift > 0) {
		const int32_t most = INT32_C(1) << (30 - shift);

		x = x < -most ? -most : x > most ? most : x;
	}
	return (int32_t)(((tinyml_wide_product(x, multiplier) >> (exponent - 1)) + 1) >> 1);
}

/** A product that is at most 2^30 in magnitude when it has been shifted by `exponent`; larger ones
 * are out of the range of int8 and int16 anyway. Exponents of 31 and more need no limit.
 */
static inline int64_t tinyml_limit_product(int64_t product, int32_t exponent)
{
	if (exponent < 31) {
		const int64_t most = INT64_C(1) << (exponent + 30);

		return product < -most ? -most : product > most ? most : product;
	}
	return product;
}

/** product / 2^exponent, rounded once, halves to even, limited to 2^30. A result as close to a half
 * as `slack` allows counts as one: `slack` bounds the error that rounded multipliers left in
 * `product`.
 */
static inline int32_t tinyml_shift_right_to_even(int64_t product, int32_t exponent, int32_t slack)
{
	const int64_t one = INT64_C(1) << exponent;
	const int64_t raised = tinyml_limit_product(product, exponent) + (one >> 1);
	const int32_t rounded = (int32_t)(raised >> exponent);
	const int64_t rest = raised & (one - 1);

	if (rest <= slack) {
		return rounded - (rounded & 1);
	}
	return rounded + (one - rest <= slack ? rounded & 1 : 0);
}

/** x * multiplier * 2^(shift - 31), rounded once, halves to even, as ONNX's QuantizeLinear rounds.
 */
static inline int32_t tinyml_rescale_to_even(int32_t x, int32_t multiplier, int32_t shift)
{
	return tinyml_shift_right_to_even(tinyml_wide_product(x, multiplier), 31 - shift,
					  x < 0 ? -x : x);
}

/** The same, halves away from zero, as TensorFlow Lite's sums round. A result as close to a half as
 * the rounded multiplier allows counts as one.
 */
static inline int32_t tinyml_rescale_away(int32_t x, int32_t multiplier, int32_t shift)
{
	const int32_t exponent = 31 - shift, size = x < 0 ? -x : x;
	const int64_t product = tinyml_wide_product(size, multiplier) + size;
	const int64_t half = (INT64_C(1) << exponent) >> 1;
	const int32_t rounded =
		(int32_t)((tinyml_limit_product(product, exponent) + half) >> exponent);

	return x < 0 ? -rounded : rounded;
}

/** x / divisor, rounded to the nearest, halves to even. */
static inline int32_t tinyml_divide_to_even(int32_t x, int32_t divisor)
{
	const int32_t quotient = x / divisor;
	const int32_t rest = x - quotient * divisor;
	const int32_t twice = 2 * (rest < 0 ? -rest : rest);

	if (twice > divisor || (twice == divisor && quotient % 2 != 0)) {
		return x < 0 ? quotient - 1 : quotient + 1;
	}
	return quotient;
}

static inline int32_t tinyml_clamp(int32_t x, int32_t low, int32_t high)
{
	return x < low ? low : x > high ? high : x;
}

/** x, limited to what int8 holds. */
static inline int32_t tinyml_saturate_s8(int32_t x)
{
#if defined(__ARM_FEATURE_SAT) && __ARM_FEATURE_SAT
	__asm__("ssat %0, #8, %1" : "=r"(x) : "r"(x)); /* compilers do not use it */
	return x;
#else
	return tinyml_clamp(x, INT8_MIN, INT8_MAX);
#endif
}

/** x, limited to what int16 holds. */
static inline int32_t tinyml_saturate_s16(int32_t x)
{
#if defined(__ARM_FEATURE_SAT) && __ARM_FEATURE_SAT
	__asm__("ssat %0, #16, %1" : "=r"(x) : "r"(x));
	return x;
#else
	return tinyml_clamp(x, INT16_MIN, INT16_MAX);
#endif
}

#endif /* TINYML_FIXED_POINT_H_ */
