/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The arithmetic that the harness brings to the Xtensa lx106, against that of the computer that
 * runs this: random bits, with exponents that are near, subnormal, or those of infinities and NaN.
 */

#define __udivmoddi4 libgcc_udivmoddi4
#define __umulsidi3  lx106_umulsidi3
#define __muldi3     lx106_muldi3
#define __udivsi3    lx106_udivsi3
#define __umodsi3    lx106_umodsi3
#define __divsi3     lx106_divsi3
#define __udivdi3    lx106_udivdi3
#define __umoddi3    lx106_umoddi3
#define __divdi3     lx106_divdi3

#include <stdint.h>
#include <stdio.h>

#include LIBGCC_LX106

#define ROUNDS 200000

uint64_t libgcc_udivmoddi4(uint64_t a, uint64_t b, uint64_t *rest)
{
	if (rest != NULL) {
		*rest = a % b;
	}
	return a / b;
}

static uint64_t state = 88172645463325252u;
static int wrong;

static uint64_t any(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Two numbers of ``bits`` bits, of which ``exponents`` are those of the exponent. */
static void pair(uint64_t *a, uint64_t *b, uint64_t exponents, uint64_t middle, uint64_t sign)
{
	const uint64_t one = exponents & (0u - exponents);

	*a = any();
	*b = any();
	switch (any() % 6u) {
	case 0:
		*b = (*b & ~exponents) | (*a & exponents);
		break;
	case 1:
		*a &= ~exponents;
		break;
	case 2:
		*b = *a ^ sign ^ (any() & 7u);
		break;
	case 3:
		*a |= exponents;
		*a &= any() % 2u ? ~(uint64_t)0 : ~(one - 1u);
		break;
	case 4:
		*a = (*a & ~exponents) | one * (middle + any() % 40u);
		*b = (*b & ~exponents) | one * (middle + any() % 40u);
		break;
	default:
		break;
	}
}

#define EQUAL(type, found, right)                                                                  \
	do {                                                                                       \
		const type x = (found), y = (right);                                               \
                                                                                                   \
		if (memcmp(&x, &y, sizeof(x)) != 0 && (x == x || y == y)) {                        \
			wrong++;                                                                   \
			printf("%s: %a, not %a\n", #found, (double)x, (double)y);                  \
		}                                                                                  \
	} while (0)

static void floats(void)
{
	uint64_t p, q;
	uint32_t low, high;
	float a, b;

	pair(&p, &q, 0x7f800000u, 110u, 0x80000000u);
	low = (uint32_t)p;
	high = (uint32_t)q;
	memcpy(&a, &low, sizeof(a));
	memcpy(&b, &high, sizeof(b));
	EQUAL(float, __addsf3(a, b), a + b);
	EQUAL(float, __subsf3(a, b), a - b);
	EQUAL(float, __mulsf3(a, b), a *b);
	EQUAL(double, __extendsfdf2(a), (double)a);
	EQUAL(float, __floatsisf((int32_t)low), (float)(int32_t)low);
	EQUAL(float, __floatunsisf(low), (float)low);
	if (a > -2e9f && a < 2e9f) {
		EQUAL(int32_t, __fixsfsi(a), (int32_t)a);
	}
	if (a >= 0 && a < 4e9f) {
		EQUAL(uint32_t, __fixunssfsi(a), (uint32_t)a);
	}
}

static void doubles(void)
{
	uint64_t p, q;
	double a, b;

	pair(&p, &q, (uint64_t)0x7ff << 52, 1000u, (uint64_t)1 << 63);
	memcpy(&a, &p, sizeof(a));
	memcpy(&b, &q, sizeof(b));
	EQUAL(double, __adddf3(a, b), a + b);
	EQUAL(double, __subdf3(a, b), a - b);
	EQUAL(double, __muldf3(a, b), a *b);
	EQUAL(double, __divdf3(a, b), a / b);
	EQUAL(float, __truncdfsf2(a), (float)a);
	EQUAL(double, __floatsidf((int32_t)p), (double)(int32_t)p);
	EQUAL(double, __floatunsidf((uint32_t)p), (double)(uint32_t)p);
	if (a > -2e9 && a < 2e9) {
		EQUAL(int32_t, __fixdfsi(a), (int32_t)a);
	}
	if (a >= 0 && a < 4e9) {
		EQUAL(uint32_t, __fixunsdfsi(a), (uint32_t)a);
	}
}

static void integers(void)
{
	const uint64_t p = any(), q = (any() >> any() % 64u) | 1u;
	const uint32_t a = (uint32_t)p, b = (uint32_t)q | 1u;

	EQUAL(uint64_t, lx106_umulsidi3(a, b), (uint64_t)a *b);
	EQUAL(uint64_t, (uint64_t)lx106_muldi3((int64_t)p, (int64_t)q), p *q);
	EQUAL(uint32_t, lx106_udivsi3(a, b), a / b);
	EQUAL(uint32_t, lx106_umodsi3(a, b), a % b);
	EQUAL(int64_t, lx106_divsi3((int32_t)(a >> 1), -7), (int32_t)(a >> 1) / -7);
	EQUAL(uint64_t, lx106_udivdi3(p, q), p / q);
	EQUAL(uint64_t, lx106_umoddi3(p, q), p % q);
	EQUAL(int64_t, lx106_divdi3(-(int64_t)(p >> 1), (int64_t)(q >> 1 | 1u)),
	      -(int64_t)(p >> 1) / (int64_t)(q >> 1 | 1u));
}

int main(void)
{
	for (int i = 0; i < ROUNDS && wrong < 10; i++) {
		floats();
		doubles();
		integers();
	}
	return wrong != 0;
}
