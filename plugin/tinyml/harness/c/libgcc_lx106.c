/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Arithmetic that Debian's libgcc for the Xtensa lx106 leaves out, because the ESP8266 has it in
 * ROM: products and quotients of integers, and most of floating point. Short rather than fast. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

uint64_t __udivmoddi4(uint64_t a, uint64_t b, uint64_t *rest); /* libgcc has this one */

/* In pieces of 16 bits: the core has no instruction for the upper half of a product. */
uint64_t __umulsidi3(uint32_t a, uint32_t b)
{
	const uint32_t al = a & 0xffffu, ah = a >> 16, bl = b & 0xffffu, bh = b >> 16;
	const uint32_t low = al * bl, first = ah * bl + (low >> 16);
	const uint32_t second = al * bh + (first & 0xffffu);

	return ((uint64_t)(ah * bh + (first >> 16) + (second >> 16)) << 32) |
	       (second << 16 | (low & 0xffffu));
}

int64_t __muldi3(int64_t a, int64_t b)
{
	const uint32_t al = (uint32_t)a, bl = (uint32_t)b;
	const uint32_t crossed =
		al * (uint32_t)((uint64_t)b >> 32) + bl * (uint32_t)((uint64_t)a >> 32);

	return (int64_t)(__umulsidi3(al, bl) + ((uint64_t)crossed << 32));
}

static uint32_t divide(uint32_t a, uint32_t b, uint32_t *rest)
{
	uint32_t quotient = 0, left = 0;

	for (int bit = 31; bit >= 0; bit--) {
		const bool carry = left >> 31 != 0u;

		left = left << 1 | (a >> bit & 1u);
		if (carry || left >= b) {
			left -= b;
			quotient |= 1u << bit;
		}
	}
	*rest = left;
	return quotient;
}

uint32_t __udivsi3(uint32_t a, uint32_t b)
{
	uint32_t rest;

	return divide(a, b, &rest);
}

uint32_t __umodsi3(uint32_t a, uint32_t b)
{
	uint32_t rest;

	divide(a, b, &rest);
	return rest;
}

int32_t __divsi3(int32_t a, int32_t b)
{
	const uint32_t size = __udivsi3(a < 0 ? 0u - (uint32_t)a : (uint32_t)a,
					b < 0 ? 0u - (uint32_t)b : (uint32_t)b);

	return (int32_t)((a < 0) != (b < 0) ? 0u - size : size);
}

uint64_t __udivdi3(uint64_t a, uint64_t b)
{
	return __udivmoddi4(a, b, NULL);
}

uint64_t __umoddi3(uint64_t a, uint64_t b)
{
	uint64_t rest;

	__udivmoddi4(a, b, &rest);
	return rest;
}

int64_t __divdi3(int64_t a, int64_t b)
{
	const uint64_t size = __udivdi3(a < 0 ? 0u - (uint64_t)a : (uint64_t)a,
					b < 0 ? 0u - (uint64_t)b : (uint64_t)b);

	return (int64_t)((a < 0) != (b < 0) ? 0u - size : size);
}

/* A floating-point number of either size: fraction * 2^(exponent - 62), where bit 62 of the
 * fraction is its highest and bit 0 also stands for everything that was shifted out. */
enum kind { ZERO, FINITE, INFINITE, NOT_A_NUMBER };
struct number {
	enum kind kind;
	bool negative;
	int32_t exponent;
	uint64_t fraction;
};

struct format {
	int32_t digits; /* bits of the fraction, with the leading one */
	int32_t least;  /* exponent of normal numbers */
};

#define TOP ((uint64_t)1 << 62)

static const struct format SINGLE = {24, -126};
static const struct format DOUBLE = {53, -1022};

static struct number normal(bool negative, int32_t exponent, uint64_t fraction)
{
	struct number n = {fraction == 0u ? ZERO : FINITE, negative, exponent, fraction};

	if (fraction >> 63 != 0u) {
		n.fraction = fraction >> 1 | (fraction & 1u);
		n.exponent++;
	}
	while (n.kind == FINITE && n.fraction < TOP) {
		n.fraction <<= 1;
		n.exponent--;
	}
	return n;
}

static int32_t all_ones(struct format f)
{
	return 3 - 2 * f.least; /* the exponent of infinities, as it is stored */
}

static struct number unpack(uint64_t bits, bool negative, struct format f)
{
	const int32_t shift = f.digits - 1, stored = (int32_t)(bits >> shift);
	const uint64_t fraction = bits & (((uint64_t)1 << shift) - 1u);

	if (stored == all_ones(f)) {
		return (struct number){fraction == 0u ? INFINITE : NOT_A_NUMBER, negative, 0, 0};
	}
	if (stored == 0) {
		return normal(negative, f.least, fraction << (62 - shift));
	}
	return normal(negative, stored + f.least - 1,
		      (fraction | (uint64_t)1 << shift) << (62 - shift));
}

/* Rounded to the nearest, to even in the middle. */
static uint64_t pack(struct number n, struct format f)
{
	const uint64_t infinite = (uint64_t)all_ones(f) << (f.digits - 1);
	const bool tiny = n.exponent < f.least;
	const int32_t shift = 63 - f.digits + (tiny ? f.least - n.exponent : 0);
	uint64_t bits;

	if (n.kind != FINITE) {
		return n.kind == ZERO ? 0u
				      : infinite | (n.kind == NOT_A_NUMBER ? infinite >> 1 : 0u);
	}
	if (shift > 63) {
		return 0;
	}
	bits = n.fraction >> shift;
	if (shift > 0) {
		const uint64_t rest = n.fraction & (((uint64_t)1 << shift) - 1u);
		const uint64_t half = (uint64_t)1 << (shift - 1);

		bits += rest > half || (rest == half && (bits & 1u) != 0u) ? 1u : 0u;
	}
	if (!tiny) { /* the leading one counts as one more of the exponent, and so does a carry */
		bits += (uint64_t)(n.exponent - f.least) << (f.digits - 1);
	}
	return n.exponent > 2 - f.least || bits > infinite ? infinite : bits;
}

static struct number sum(struct number a, struct number b)
{
	if (a.kind == NOT_A_NUMBER || b.kind == ZERO) {
		a.negative = a.negative && (a.kind != ZERO || b.negative);
		return a;
	}
	if (b.kind == NOT_A_NUMBER || a.kind == ZERO) {
		return b;
	}
	if (a.kind == INFINITE && b.kind == INFINITE && a.negative != b.negative) {
		return (struct number){NOT_A_NUMBER, false, 0, 0};
	}
	if (a.kind == INFINITE || b.kind == INFINITE) {
		return a.kind == INFINITE ? a : b;
	}
	if (a.exponent < b.exponent || (a.exponent == b.exponent && a.fraction < b.fraction)) {
		return sum(b, a);
	}
	const int32_t shift = a.exponent - b.exponent;
	uint64_t smaller = 1; /* only there */

	if (shift < 63) {
		smaller = b.fraction >> shift;
		smaller |= (b.fraction & (((uint64_t)1 << shift) - 1u)) != 0u ? 1u : 0u;
	}
	const uint64_t size =
		a.negative == b.negative ? a.fraction + smaller : a.fraction - smaller;

	return normal(a.negative && size != 0u, a.exponent, size);
}

static struct number product(struct number a, struct number b)
{
	const bool negative = a.negative != b.negative;

	if (a.kind == NOT_A_NUMBER || b.kind == NOT_A_NUMBER ||
	    (a.kind == ZERO && b.kind == INFINITE) || (a.kind == INFINITE && b.kind == ZERO)) {
		return (struct number){NOT_A_NUMBER, false, 0, 0};
	}
	if (a.kind != FINITE || b.kind != FINITE) {
		const enum kind kind = a.kind == ZERO || b.kind == ZERO ? ZERO : INFINITE;

		return (struct number){kind, negative, 0, 0};
	}
	const uint32_t al = (uint32_t)a.fraction, ah = (uint32_t)(a.fraction >> 32);
	const uint32_t bl = (uint32_t)b.fraction, bh = (uint32_t)(b.fraction >> 32);
	const uint64_t low = __umulsidi3(al, bl), first = __umulsidi3(ah, bl) + (low >> 32);
	const uint64_t second = __umulsidi3(al, bh) + (uint32_t)first;
	const uint64_t high = __umulsidi3(ah, bh) + (first >> 32) + (second >> 32);
	const uint64_t lower = second << 32 | (uint32_t)low;
	const uint64_t lost = (lower << 2) != 0u ? 1u : 0u;

	return normal(negative, a.exponent + b.exponent, high << 2 | lower >> 62 | lost);
}

static struct number quotient(struct number a, struct number b)
{
	const bool negative = a.negative != b.negative;
	uint64_t rest = a.fraction, bits = 0;

	if (a.kind == NOT_A_NUMBER || b.kind == NOT_A_NUMBER ||
	    (a.kind == ZERO && b.kind == ZERO) || (a.kind == INFINITE && b.kind == INFINITE)) {
		return (struct number){NOT_A_NUMBER, false, 0, 0};
	}
	if (a.kind != FINITE || b.kind != FINITE) {
		const enum kind kind = a.kind == ZERO || b.kind == INFINITE ? ZERO : INFINITE;

		return (struct number){kind, negative, 0, 0};
	}
	for (int bit = 62; bit >= 0; bit--) {
		if (rest >= b.fraction) {
			rest -= b.fraction;
			bits |= (uint64_t)1 << bit;
		}
		rest <<= 1;
	}
	return normal(negative, a.exponent - b.exponent, bits | (rest != 0u ? 1u : 0u));
}

static struct number from_float(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return unpack(bits & 0x7fffffffu, bits >> 31 != 0u, SINGLE);
}

static float to_float(struct number n)
{
	const uint32_t bits = (uint32_t)pack(n, SINGLE) | (n.negative ? 0x80000000u : 0u);
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static struct number from_double(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return unpack(bits << 1 >> 1, bits >> 63 != 0u, DOUBLE);
}

static double to_double(struct number n)
{
	const uint64_t bits = pack(n, DOUBLE) | (n.negative ? (uint64_t)1 << 63 : 0u);
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static struct number from_int(int32_t value)
{
	return normal(value < 0, 62, value < 0 ? 0u - (uint64_t)(int64_t)value : (uint64_t)value);
}

/* Towards zero; what does not fit is not defined. */
static uint32_t whole(struct number n)
{
	const bool fits = n.kind == FINITE && n.exponent >= 0 && n.exponent <= 62;
	const uint32_t size = fits ? (uint32_t)(n.fraction >> (62 - n.exponent)) : 0u;

	return n.negative ? 0u - size : size;
}

static struct number minus(struct number n)
{
	n.negative = !n.negative;
	return n;
}

/* clang-format off */
float __addsf3(float a, float b) { return to_float(sum(from_float(a), from_float(b))); }
float __subsf3(float a, float b) { return to_float(sum(from_float(a), minus(from_float(b)))); }
float __mulsf3(float a, float b) { return to_float(product(from_float(a), from_float(b))); }
float __floatsisf(int32_t a) { return to_float(from_int(a)); }
float __floatunsisf(uint32_t a) { return to_float(normal(false, 62, a)); }
int32_t __fixsfsi(float a) { return (int32_t)whole(from_float(a)); }
uint32_t __fixunssfsi(float a) { return whole(from_float(a)); }
double __adddf3(double a, double b) { return to_double(sum(from_double(a), from_double(b))); }
double __subdf3(double a, double b) { return to_double(sum(from_double(a), minus(from_double(b)))); }
double __muldf3(double a, double b) { return to_double(product(from_double(a), from_double(b))); }
double __divdf3(double a, double b) { return to_double(quotient(from_double(a), from_double(b))); }
double __floatsidf(int32_t a) { return to_double(from_int(a)); }
double __floatunsidf(uint32_t a) { return to_double(normal(false, 62, a)); }
int32_t __fixdfsi(double a) { return (int32_t)whole(from_double(a)); }
uint32_t __fixunsdfsi(double a) { return whole(from_double(a)); }
double __extendsfdf2(float a) { return to_double(from_float(a)); }
float __truncdfsf2(double a) { return to_float(from_double(a)); }
/* clang-format on */
