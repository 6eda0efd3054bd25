/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Arithmetic of coordinates. Cores without an FPU compute in integers: the results are those of
 * IEEE 754, but the number of instructions hardly depends on the operands, as it does in the
 * compiler's library, where a number close to zero takes several times as long. So the bound of the
 * instructions is close to what runs take.
 *
 * BOXES_IN_INTEGERS, if defined, says which way to take: tests compare both on the host.
 */

#ifndef TINYML_REAL_H_
#define TINYML_REAL_H_

#include <stdbool.h>
#include <stdint.h>

#include <tinyml/maths_bits.h>

#ifndef BOXES_IN_INTEGERS
#if (defined(__arm__) && !defined(__ARM_FP)) || (defined(__riscv) && !defined(__riscv_flen))
#define BOXES_IN_INTEGERS 1
#else
#define BOXES_IN_INTEGERS 0
#endif
#endif

#if BOXES_IN_INTEGERS

#define REAL_SIGN     0x80000000u
#define REAL_INFINITE 0x7f800000u
#define REAL_NAN      0x7fc00000u
#define REAL_HIDDEN   0x00800000u /* the bit of a mantissa that is not stored */

/* Integers that are ordered like the numbers; both zeros are 0. Not for NaN. No branch: there would
 * be one for each of two numbers wherever they are compared, and bounds take all ways. */
static inline int32_t real_order(float x)
{
	const uint32_t bits = tinyml_bits_of_float(x);
	const uint32_t negative = 0u - (bits >> 31);

	return (int32_t)(((bits & ~REAL_SIGN) ^ negative) - negative);
}

static inline bool real_is_nan(float x)
{
	return (tinyml_bits_of_float(x) & ~REAL_SIGN) > REAL_INFINITE;
}

static inline bool real_below(float a, float b)
{
	return !real_is_nan(a) && !real_is_nan(b) && real_order(a) < real_order(b);
}

static inline bool real_positive(float x)
{
	return tinyml_bits_of_float(x) - 1u < REAL_INFINITE;
}

/* Of two numbers that are not NaN. */
static inline bool real_less(float a, float b)
{
	return real_order(a) < real_order(b);
}

static inline float real_max(float a, float b)
{
	return real_order(a) > real_order(b) ? a : b;
}

static inline float real_min(float a, float b)
{
	return real_order(a) < real_order(b) ? a : b;
}

/* Move digits down; those that are lost leave a 1 if one of them was. */
static inline uint32_t real_moved(uint32_t digits, uint32_t by)
{
	const uint32_t places = by > 31u ? 31u : by;
	const uint32_t left = digits >> places;

	return left | (uint32_t)(left << places != digits);
}

/* digits * 2^(exponent - 127 - 31), where the uppermost digit is a 1, rounded to even. */
static inline uint32_t real_rounded(uint32_t digits, int32_t exponent)
{
	const uint32_t down = exponent > 0 ? 0u : (uint32_t)(1 - exponent);
	const uint32_t upper = exponent > 0 ? (uint32_t)(exponent - 1) << 23 : 0u;
	const uint32_t kept = real_moved(digits, down);
	const uint32_t bits = upper + (kept >> 8);

	if (exponent > 254) {
		return REAL_INFINITE;
	}
	return bits + (uint32_t)((kept & 0xffu) + (bits & 1u) > 0x80u);
}

__attribute__((noinline)) static float real_sum(float x, float y)
{
	uint32_t a = tinyml_bits_of_float(x);
	uint32_t b = tinyml_bits_of_float(y);

	if (a << 1 < b << 1) {
		const uint32_t smaller = a;

		a = b;
		b = smaller;
	}
	const uint32_t size = a & ~REAL_SIGN;

	if (size >= REAL_INFINITE) {
		return tinyml_float_of_bits(size > REAL_INFINITE || (a ^ b) == REAL_SIGN ? REAL_NAN
											 : a);
	}
	const uint32_t exponent = size >> 23;
	const uint32_t other = b >> 23 & 0xffu;
	const uint32_t first = exponent != 0u ? (size | REAL_HIDDEN) & 0xffffffu : size;
	const uint32_t second = other != 0u ? (b | REAL_HIDDEN) & 0xffffffu : b & 0x7fffffu;
	const uint32_t down =
		(exponent != 0u ? exponent : 1u) - (other != 0u ? other : 1u); /* places */
	const uint32_t moved = real_moved(second << 7, down);
	const uint32_t sum =
		((a ^ b) & REAL_SIGN) != 0u ? (first << 7) - moved : (first << 7) + moved;

	if (sum == 0u) {
		return tinyml_float_of_bits(a & b & REAL_SIGN);
	}
	const int32_t zeros = __builtin_clz(sum);

	return tinyml_float_of_bits(
		(a & REAL_SIGN) |
		real_rounded(sum << zeros, (int32_t)(exponent != 0u ? exponent : 1u) + 1 - zeros));
}

static inline float real_difference(float x, float y)
{
	return real_sum(x, tinyml_float_of_bits(tinyml_bits_of_float(y) ^ REAL_SIGN));
}

/* The digits of a number that is not zero, the uppermost a 1, and its exponent. */
static inline uint32_t real_digits(uint32_t size, int32_t *exponent)
{
	const int32_t zeros = size < REAL_HIDDEN ? __builtin_clz(size) : 8;

	*exponent = size < REAL_HIDDEN ? 9 - zeros : (int32_t)(size >> 23);
	return size << zeros | REAL_SIGN;
}

__attribute__((noinline)) static float real_product(float x, float y)
{
	const uint32_t sign = (tinyml_bits_of_float(x) ^ tinyml_bits_of_float(y)) & REAL_SIGN;
	const uint32_t a = tinyml_bits_of_float(x) & ~REAL_SIGN;
	const uint32_t b = tinyml_bits_of_float(y) & ~REAL_SIGN;
	const uint32_t large = a > b ? a : b;
	const uint32_t small = a > b ? b : a;

	if (large >= REAL_INFINITE) {
		const bool none = large > REAL_INFINITE || small == 0u;

		return tinyml_float_of_bits(none ? REAL_NAN : sign | REAL_INFINITE);
	}
	if (small == 0u || large < REAL_HIDDEN) { /* two subnormal numbers are too small as well */
		return tinyml_float_of_bits(sign);
	}
	int32_t exponent;
	const uint32_t right = real_digits(small, &exponent);
	const uint64_t product = (uint64_t)(large << 8 | REAL_SIGN) * right;
	const uint32_t digits = (uint32_t)(product >> 32) | (uint32_t)((uint32_t)product != 0u);
	const uint32_t up = 1u - (digits >> 31);

	exponent += (int32_t)(large >> 23) - 126 - (int32_t)up;
	return tinyml_float_of_bits(sign | real_rounded(digits << up, exponent));
}

/* One digit of 0 or 1 after the other; eight at once where the core divides. */
static inline uint32_t real_digits_of_quotient(uint32_t *rest, uint32_t divisor)
{
	uint32_t digits = 1;
	uint32_t left = *rest;

#if defined(__ARM_FEATURE_IDIV) || defined(__riscv_div)
	for (int32_t i = 0; i < 3; i++) {
		const uint32_t next = (left << 8) / divisor;

		left = (left << 8) - next * divisor;
		digits = digits << 8 | next;
	}
#else
	for (int32_t i = 0; i < 24; i++) {
		const uint32_t less = 2u * left - divisor;
		const uint32_t mask = 0u - (less >> 31); /* the digit is 0 */

		left = less + (divisor & mask);
		digits = 2u * digits + 1u + mask;
	}
#endif
	*rest = left;
	return digits;
}

__attribute__((noinline)) static float real_quotient(float x, float y)
{
	const uint32_t sign = (tinyml_bits_of_float(x) ^ tinyml_bits_of_float(y)) & REAL_SIGN;
	const uint32_t a = tinyml_bits_of_float(x) & ~REAL_SIGN;
	const uint32_t b = tinyml_bits_of_float(y) & ~REAL_SIGN;

	if (a > REAL_INFINITE || b > REAL_INFINITE || (a == b && (a == 0u || a == REAL_INFINITE))) {
		return tinyml_float_of_bits(REAL_NAN);
	}
	if (a == 0u || b == REAL_INFINITE) {
		return tinyml_float_of_bits(sign);
	}
	if (b == 0u || a == REAL_INFINITE) {
		return tinyml_float_of_bits(sign | REAL_INFINITE);
	}
	int32_t first;
	int32_t second;
	const uint32_t dividend = real_digits(a, &first) >> 8;
	const uint32_t divisor = real_digits(b, &second) >> 8;
	const uint32_t up = (uint32_t)(dividend < divisor);
	uint32_t rest = (dividend << up) - divisor;
	const uint32_t digits = real_digits_of_quotient(&rest, divisor) << 7;

	return tinyml_float_of_bits(sign | real_rounded(digits | (uint32_t)(rest != 0u),
							first - second + 127 - (int32_t)up));
}

/* An integer of few digits. */
static inline float real_of_int(int32_t whole)
{
	const uint32_t size = whole < 0 ? 0u - (uint32_t)whole : (uint32_t)whole;
	const int32_t zeros = size == 0u ? 158 : __builtin_clz(size);
	const uint32_t digits = size == 0u ? 0u : size << zeros >> 8 & 0x7fffffu;

	return tinyml_float_of_bits((whole < 0 ? REAL_SIGN : 0u) | (uint32_t)(158 - zeros) << 23 |
				    digits);
}

#else

static inline bool real_is_nan(float x)
{
	return x != x;
}

static inline bool real_below(float a, float b)
{
	return a < b;
}

static inline bool real_positive(float x)
{
	return x > 0.0f;
}

static inline bool real_less(float a, float b)
{
	return a < b;
}

static inline float real_max(float a, float b)
{
	return a > b ? a : b;
}

static inline float real_min(float a, float b)
{
	return a < b ? a : b;
}

static inline float real_sum(float x, float y)
{
	return x + y;
}

static inline float real_difference(float x, float y)
{
	return x - y;
}

static inline float real_product(float x, float y)
{
	return x * y;
}

static inline float real_quotient(float x, float y)
{
	return x / y;
}

static inline float real_of_int(int32_t whole)
{
	return (float)whole;
}

#endif

/* Real value of a stored one. */
static inline float real_scaled(int32_t stored, float scale)
{
	return real_product(real_of_int(stored), scale);
}

#endif /* TINYML_REAL_H_ */
