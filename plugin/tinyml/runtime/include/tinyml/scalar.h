/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Arithmetic that C leaves undefined for some operands, defined for all of them.
 *
 * Suffixes: s32, u32, s64, u64. Smaller types are widened by the caller. Overflow wraps, a division
 * by zero gives 0, a shift by no less than the width (or by a negative number) shifts everything
 * out, and a real number that does not fit an integer becomes the nearest one that does (NaN: 0).
 */

#ifndef TINYML_SCALAR_H_
#define TINYML_SCALAR_H_

#include <stdbool.h>
#include <stdint.h>

#include <tinyml/maths_bits.h>

#define TINYML_DEFINE_SIGNED(suffix, type, wrapping)                                               \
	static inline type tinyml_div_##suffix(type a, type b)                                     \
	{                                                                                          \
		if (b == -1) {                                                                     \
			return (type)((wrapping)0 - (wrapping)a);                                  \
		}                                                                                  \
		return b == 0 ? 0 : a / b;                                                         \
	}                                                                                          \
	static inline type tinyml_rem_##suffix(type a, type b)                                     \
	{                                                                                          \
		return b == 0 || b == -1 ? 0 : a % b;                                              \
	}                                                                                          \
	static inline type tinyml_floor_div_##suffix(type a, type b)                               \
	{                                                                                          \
		const type rest = tinyml_rem_##suffix(a, b);                                       \
		const type whole = tinyml_div_##suffix(a, b);                                      \
                                                                                                   \
		return rest != 0 && (rest < 0) != (b < 0) ? whole - 1 : whole;                     \
	}                                                                                          \
	static inline type tinyml_mod_##suffix(type a, type b)                                     \
	{                                                                                          \
		const type rest = tinyml_rem_##suffix(a, b);                                       \
                                                                                                   \
		return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;                       \
	}                                                                                          \
	static inline type tinyml_shift_right_##suffix(type a, type b, type width)                 \
	{                                                                                          \
		return a >> (b < 0 || b >= width ? width - 1 : b);                                 \
	}                                                                                          \
	static inline type tinyml_shift_left_##suffix(type a, type b, type width)                  \
	{                                                                                          \
		return b < 0 || b >= width ? 0 : (type)((wrapping)a << b);                         \
	}                                                                                          \
	static inline type tinyml_pow_##suffix(type a, type b)                                     \
	{                                                                                          \
		wrapping base = (wrapping)a, result = 1;                                           \
                                                                                                   \
		if (b < 0) { /* a fraction, cut to a whole number */                               \
			return a == 1 ? 1 : a == -1 ? ((b & 1) != 0 ? -1 : 1) : 0;                 \
		}                                                                                  \
		for (; b > 0; b >>= 1) {                                                           \
			result *= (b & 1) != 0 ? base : 1;                                         \
			base *= base;                                                              \
		}                                                                                  \
		return (type)result;                                                               \
	}

#define TINYML_DEFINE_UNSIGNED(suffix, type)                                                       \
	static inline type tinyml_div_##suffix(type a, type b)                                     \
	{                                                                                          \
		return b == 0 ? 0 : a / b;                                                         \
	}                                                                                          \
	static inline type tinyml_rem_##suffix(type a, type b)                                     \
	{                                                                                          \
		return b == 0 ? 0 : a % b;                                                         \
	}                                                                                          \
	static inline type tinyml_floor_div_##suffix(type a, type b)                               \
	{                                                                                          \
		return tinyml_div_##suffix(a, b);                                                  \
	}                                                                                          \
	static inline type tinyml_mod_##suffix(type a, type b)                                     \
	{                                                                                          \
		return tinyml_rem_##suffix(a, b);                                                  \
	}                                                                                          \
	static inline type tinyml_shift_right_##suffix(type a, type b, type width)                 \
	{                                                                                          \
		return b >= width ? 0 : a >> b;                                                    \
	}                                                                                          \
	static inline type tinyml_shift_left_##suffix(type a, type b, type width)                  \
	{                                                                                          \
		return b >= width ? 0 : a << b;                                                    \
	}                                                                                          \
	static inline type tinyml_pow_##suffix(type a, type b)                                     \
	{                                                                                          \
		type result = 1;                                                                   \
                                                                                                   \
		for (; b > 0; b >>= 1) {                                                           \
			result *= (b & 1) != 0 ? a : 1;                                            \
			a *= a;                                                                    \
		}                                                                                  \
		return result;                                                                     \
	}

TINYML_DEFINE_SIGNED(s32, int32_t, uint32_t)
TINYML_DEFINE_SIGNED(s64, int64_t, uint64_t)
TINYML_DEFINE_UNSIGNED(u32, uint32_t)
TINYML_DEFINE_UNSIGNED(u64, uint64_t)

/* low and high + 1 are exact in float and double: powers of two. */
#define TINYML_DEFINE_CONVERSION(name, real, type, low, high)                                      \
	static inline type tinyml_##name##_from_##real(real x)                                     \
	{                                                                                          \
		if (!(x > (real)(low))) {                                                          \
			return x <= (real)(low) ? low : 0;                                         \
		}                                                                                  \
		return x < (real)(high / 2 + 1) * 2 ? (type)x : high;                              \
	}

#define TINYML_DEFINE_CONVERSIONS(real)                                                            \
	TINYML_DEFINE_CONVERSION(int8, real, int8_t, INT8_MIN, INT8_MAX)                           \
	TINYML_DEFINE_CONVERSION(uint8, real, uint8_t, 0, UINT8_MAX)                               \
	TINYML_DEFINE_CONVERSION(int16, real, int16_t, INT16_MIN, INT16_MAX)                       \
	TINYML_DEFINE_CONVERSION(uint16, real, uint16_t, 0, UINT16_MAX)                            \
	TINYML_DEFINE_CONVERSION(int32, real, int32_t, INT32_MIN, INT32_MAX)                       \
	TINYML_DEFINE_CONVERSION(uint32, real, uint32_t, 0, UINT32_MAX)                            \
	TINYML_DEFINE_CONVERSION(int64, real, int64_t, INT64_MIN, INT64_MAX)                       \
	TINYML_DEFINE_CONVERSION(uint64, real, uint64_t, 0, UINT64_MAX)

TINYML_DEFINE_CONVERSIONS(float)
TINYML_DEFINE_CONVERSIONS(double)

/* The remainder with the sign of the divisor; of an infinite divisor, the divisor itself. */
#define TINYML_DEFINE_MOD(real, remainder, with_sign)                                              \
	static inline real tinyml_mod_##real(real a, real b)                                       \
	{                                                                                          \
		const real rest = remainder(a, b);                                                 \
                                                                                                   \
		if (rest == 0) {                                                                   \
			return with_sign(0, b);                                                    \
		}                                                                                  \
		return (rest < 0) != (b < 0) ? rest + b : rest;                                    \
	}

TINYML_DEFINE_MOD(float, tinyml_fmodf, tinyml_copysignf)
TINYML_DEFINE_MOD(double, tinyml_fmod, tinyml_copysign)

/* The floor of the quotient, in double: one that is almost whole must not be rounded up before. */
#define TINYML_DEFINE_FLOOR_DIV(real)                                                              \
	static inline real tinyml_floor_div_##real(real a, real b)                                 \
	{                                                                                          \
		const double quotient = (double)a / (double)b;                                     \
                                                                                                   \
		if (!(quotient > -4e15 && quotient < 4e15)) {                                      \
			return (real)quotient; /* whole, infinite, or not a number */              \
		}                                                                                  \
		return (real)((int64_t)quotient - (quotient < (double)(int64_t)quotient));         \
	}

TINYML_DEFINE_FLOOR_DIV(float)
TINYML_DEFINE_FLOOR_DIV(double)

#endif /* TINYML_SCALAR_H_ */
