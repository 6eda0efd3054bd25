/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Functions of <math.h> that only move bits: rounding, remainders, square roots. All are exact.
 *
 * They are here so that no model needs a C library with a complete <math.h>.
 */

#ifndef TINYML_MATHS_BITS_H_
#define TINYML_MATHS_BITS_H_

#include <stdbool.h>
#include <stdint.h>

#define TINYML_NANF      __builtin_nanf("")
#define TINYML_INFINITYF __builtin_inff()

static inline uint32_t tinyml_bits_of_float(float x)
{
	const union {
		float real;
		uint32_t bits;
	} both = {x};

	return both.bits;
}

static inline float tinyml_float_of_bits(uint32_t bits)
{
	const union {
		uint32_t bits;
		float real;
	} both = {bits};

	return both.real;
}

static inline uint64_t tinyml_bits_of_double(double x)
{
	const union {
		double real;
		uint64_t bits;
	} both = {x};

	return both.bits;
}

static inline double tinyml_double_of_bits(uint64_t bits)
{
	const union {
		uint64_t bits;
		double real;
	} both = {bits};

	return both.real;
}

/* 2^n of a normal number: -126 <= n <= 127. */
static inline float tinyml_power_of_two(int32_t n)
{
	return tinyml_float_of_bits((uint32_t)(n + 127) << 23);
}

/* name: suffix of the functions. whole: an integer type that holds every number with a fraction.
 * mantissa: bits stored of it. spare: bits of the unsigned type above a mantissa. */
#define TINYML_DEFINE_ROUNDING(name, real, unsigned_type, whole, mantissa, spare)                  \
	static inline real tinyml_fabs##name(real x)                                               \
	{                                                                                          \
		return tinyml_##real##_of_bits(tinyml_bits_of_##real(x) &                          \
					       ((unsigned_type) - 1 >> 1));                        \
	}                                                                                          \
	static inline real tinyml_copysign##name(real x, real sign)                                \
	{                                                                                          \
		const unsigned_type magnitude = (unsigned_type) - 1 >> 1;                          \
                                                                                                   \
		return tinyml_##real##_of_bits((tinyml_bits_of_##real(x) & magnitude) |            \
					       (tinyml_bits_of_##real(sign) & ~magnitude));        \
	}                                                                                          \
	/* Of two numbers; if one of them is NaN, the other. */                                    \
	static inline real tinyml_fmin##name(real a, real b)                                       \
	{                                                                                          \
		return a < b || b != b ? a : b;                                                    \
	}                                                                                          \
	static inline real tinyml_fmax##name(real a, real b)                                       \
	{                                                                                          \
		return a > b || b != b ? a : b;                                                    \
	}                                                                                          \
	/* Whether x can have digits after the point; not so NaN. */                               \
	static inline bool tinyml_has_fraction##name(real x)                                       \
	{                                                                                          \
		return tinyml_fabs##name(x) < (real)((whole)1 << (mantissa));                      \
	}                                                                                          \
	static inline real tinyml_trunc##name(real x)                                              \
	{                                                                                          \
		return tinyml_has_fraction##name(x) ? tinyml_copysign##name((real)(whole)x, x)     \
						    : x;                                           \
	}                                                                                          \
	static inline real tinyml_floor##name(real x)                                              \
	{                                                                                          \
		const real towards_zero = tinyml_trunc##name(x);                                   \
                                                                                                   \
		return towards_zero > x ? towards_zero - 1 : towards_zero;                         \
	}                                                                                          \
	static inline real tinyml_ceil##name(real x)                                               \
	{                                                                                          \
		const real towards_zero = tinyml_trunc##name(x);                                   \
                                                                                                   \
		return towards_zero < x ? towards_zero + 1 : towards_zero;                         \
	}                                                                                          \
	/* Halves to even. */                                                                      \
	static inline real tinyml_rint##name(real x)                                               \
	{                                                                                          \
		if (!tinyml_has_fraction##name(x)) {                                               \
			return x;                                                                  \
		}                                                                                  \
		const real positive = tinyml_fabs##name(x);                                        \
		whole rounded = (whole)positive;                                                   \
		const real rest = positive - (real)rounded;                                        \
                                                                                                   \
		if (rest > (real)0.5 || (!(rest < (real)0.5) && (rounded & 1) != 0)) {             \
			rounded++;                                                                 \
		}                                                                                  \
		return tinyml_copysign##name((real)rounded, x);                                    \
	}                                                                                          \
	/* x - y * trunc(x / y): a long division, as many digits at a time as there are spare bits \
	 */                                                                                        \
	static inline real tinyml_fmod##name(real x, real y)                                       \
	{                                                                                          \
		const unsigned_type one = (unsigned_type)1 << (mantissa);                          \
		const unsigned_type infinite = ((unsigned_type) - 1 >> 1) & ~(one - 1);            \
		const unsigned_type a = tinyml_bits_of_##real(tinyml_fabs##name(x));               \
		const unsigned_type b = tinyml_bits_of_##real(tinyml_fabs##name(y));               \
                                                                                                   \
		if (b == 0 || a >= infinite || b > infinite) {                                     \
			return (real)TINYML_NANF;                                                  \
		}                                                                                  \
		if (a < b) {                                                                       \
			return x;                                                                  \
		}                                                                                  \
		int32_t digits = (int32_t)(a >> (mantissa));                                       \
		int32_t exponent = (int32_t)(b >> (mantissa));                                     \
		const unsigned_type divisor = exponent == 0 ? b : (b & (one - 1)) | one;           \
		unsigned_type rest = (digits == 0 ? a : (a & (one - 1)) | one) % divisor;          \
                                                                                                   \
		exponent += exponent == 0;                                                         \
		digits = (digits == 0 ? 1 : digits) - exponent;                                    \
		while (digits > 0) {                                                               \
			const int32_t taken = digits < (spare) ? digits : (spare);                 \
                                                                                                   \
			rest = (rest << taken) % divisor;                                          \
			digits -= taken;                                                           \
		}                                                                                  \
		while (rest != 0 && rest < one && exponent > 1) {                                  \
			rest <<= 1;                                                                \
			exponent--;                                                                \
		}                                                                                  \
		if (rest >= one) {                                                                 \
			rest = (rest - one) | ((unsigned_type)exponent << (mantissa));             \
		}                                                                                  \
		return tinyml_copysign##name(tinyml_##real##_of_bits(rest), x);                    \
	}

TINYML_DEFINE_ROUNDING(f, float, uint32_t, int32_t, 23, 8)
TINYML_DEFINE_ROUNDING(, double, uint64_t, int64_t, 52, 11)

static inline bool tinyml_isfinitef(float x)
{
	return tinyml_fabsf(x) < TINYML_INFINITYF;
}

/* An instruction where the core has one: compilers otherwise call the library for negative x. */
static inline float tinyml_sqrtf(float x)
{
#if defined(__arm__) && defined(__ARM_FP) && (__ARM_FP & 4) != 0
	float root;

	__asm__("vsqrt.f32 %0, %1" : "=t"(root) : "t"(x));
	return root;
#elif defined(__riscv_flen)
	float root;

	__asm__("fsqrt.s %0, %1" : "=f"(root) : "f"(x));
	return root;
#else
	const uint32_t infinite = 0x7f800000;
	uint32_t bits = tinyml_bits_of_float(x);

	if ((bits & ~0x80000000u) == 0 || (bits & ~0x80000000u) > infinite || bits == infinite) {
		return x;
	}
	if (bits > 0x80000000u) {
		return TINYML_NANF;
	}
	int32_t exponent = (int32_t)(bits >> 23) - 127;

	if (exponent == -127) { /* subnormal */
		const int32_t shift = __builtin_clz(bits) - 8;

		bits <<= shift;
		exponent = -126 - shift;
	}
	const uint64_t square = (uint64_t)((bits & 0x7fffff) | 0x800000) << (25 + (exponent & 1));
	uint32_t root = 0; /* one bit more than the result has */

	for (uint32_t bit = 1u << 24; bit != 0; bit >>= 1) {
		const uint32_t larger = root | bit;

		root = (uint64_t)larger * larger <= square ? larger : root;
	}
	return tinyml_float_of_bits(((uint32_t)((exponent >> 1) + 126) << 23) + ((root + 1) >> 1));
#endif
}

#endif /* TINYML_MATHS_BITS_H_ */
