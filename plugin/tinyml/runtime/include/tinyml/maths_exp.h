/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Exponentials and logarithms of float, at most 2 units in the last place off.
 *
 * exp, log and pow compute in integers: the same bits on every core, and fast without an FPU, too.
 * tools/maths_coefficients.py computes the coefficients.
 */

#ifndef TINYML_MATHS_EXP_H_
#define TINYML_MATHS_EXP_H_

#include <tinyml/maths_bits.h>

#define TINYML_LOG2_BITS 54 /* after the point of a binary logarithm */

static inline uint32_t tinyml_high_product(uint32_t a, uint32_t b)
{
	return (uint32_t)(((uint64_t)a * b) >> 32);
}

/* 2^x for x in Q32. */
static inline float tinyml_exp2_fixed(int64_t x)
{
	const uint32_t f = (uint32_t)x;
	const int32_t exponent = (int32_t)(x >> 32) + 127;
	uint32_t sum = 92725;

	if (exponent >= 255) {
		return TINYML_INFINITYF;
	}
	sum = tinyml_high_product(sum, f) + 615169;
	sum = tinyml_high_product(sum, f) + 5766528;
	sum = tinyml_high_product(sum, f) + 41290999;
	sum = tinyml_high_product(sum, f) + 238392929;
	sum = tinyml_high_product(sum, f) + 1031764452;
	sum = tinyml_high_product(sum, f) + 2977044493u;
	sum = tinyml_high_product(sum, f); /* 2^f - 1 in Q32 */
	if (exponent > 0) {
		return tinyml_float_of_bits(((uint32_t)exponent << 23) + (sum >> 9) +
					    ((sum >> 8) & 1));
	}
	if (exponent < -23) {
		return 0.0f;
	}
	const uint32_t twice = (0x80000000u | (sum >> 1)) >> (8 - exponent);

	return tinyml_float_of_bits((twice + 1) >> 1);
}

/* e^x * 2^power, |power| <= 2. */
static inline float tinyml_exp_scaled(float x, int32_t power)
{
	const uint32_t bits = tinyml_bits_of_float(x);
	const int32_t exponent = (int32_t)(bits >> 23 & 0xff);

	if (exponent >= 127 + 7) { /* |x| >= 128 */
		return x != x ? x : x < 0.0f ? 0.0f : TINYML_INFINITYF;
	}
	if (exponent < 127 - 26) {
		return tinyml_power_of_two(power);
	}
	/* log2(e) in Q39: the product has no more than 64 bits */
	const uint64_t product = (uint64_t)((bits & 0x7fffff) | 0x800000) * 793129986396u;
	const int64_t scaled = (int64_t)(product >> (157 - exponent));

	return tinyml_exp2_fixed((x < 0.0f ? -scaled : scaled) + (int64_t)power * 4294967296);
}

static inline float tinyml_expf(float x)
{
	return tinyml_exp_scaled(x, 0);
}

/* The binary logarithm of a positive finite number, in Q54. */
static inline int64_t tinyml_log2_fixed(float x)
{
	/* Mantissas 1 + i / 16: a factor in Q12 that makes them almost 1, minus its logarithm. */
	static const struct {
		int32_t factor;
		int64_t minus_log2;
	} near[] = {
		{4096, 0},
		{3855, 1575987045073953},
		{3641, 3060303574821676},
		{3449, 4468247929246308},
		{3277, 5797754781133325},
		{3121, 7065379646818445},
		{2979, 8275591148104183},
		{2849, 9435223050845760},
		{2731, 10534575274767959},
		{2621, 11603044566456344},
		{2521, 12614034867055196},
		{2427, 13601620397015098},
		{2341, 14539254960245207},
		{2260, 15454425348224055},
		{2185, 16331537276812067},
		{2114, 17190065733675378},
		{2048, 18014398509481984},
	};
	uint32_t bits = tinyml_bits_of_float(x);
	int32_t exponent = (int32_t)(bits >> 23) - 127;

	if (exponent == -127) { /* subnormal */
		const int32_t shift = __builtin_clz(bits) - 8;

		bits <<= shift;
		exponent = -126 - shift;
	}
	const uint32_t mantissa = (bits & 0x7fffff) | 0x800000;
	const uint32_t i = ((mantissa + (1 << 18)) >> 19) - 16;
	/* mantissa * factor - 1 in Q35: a small number, so 32 bits of the product are all of it */
	const int32_t z = (int32_t)(mantissa * (uint32_t)near[i].factor);
	int32_t sum = -258567410; /* Q30 */

	sum = (int32_t)(((int64_t)sum * z) >> 35) + 310148170;
	sum = (int32_t)(((int64_t)sum * z) >> 35) - 387270272;
	sum = (int32_t)(((int64_t)sum * z) >> 35) + 516360544;
	sum = (int32_t)(((int64_t)sum * z) >> 35) - 774541002;
	sum = (int32_t)(((int64_t)sum * z) >> 35) + 1549082005;
	return (int64_t)exponent * ((int64_t)1 << TINYML_LOG2_BITS) + near[i].minus_log2 +
	       (((int64_t)sum * z) >> 11);
}

#define TINYML_LN_2    2977044472u /* Q32 */
#define TINYML_LOG10_2 1292913986u

/* log2(x * 2^power) times a factor in Q32: the logarithm to another base. */
static inline float tinyml_log_scaled(float x, int32_t power, uint32_t factor)
{
	if (!(x > 0.0f && x < TINYML_INFINITYF)) {
		return x < 0.0f ? TINYML_NANF : x == 0.0f ? -TINYML_INFINITYF : x;
	}
	const int64_t log2 =
		tinyml_log2_fixed(x) + (int64_t)power * ((int64_t)1 << TINYML_LOG2_BITS);
	const uint64_t size = log2 < 0 ? (uint64_t)-log2 : (uint64_t)log2;

	if (size == 0) {
		return 0.0f;
	}
	const int32_t zeros = __builtin_clzll(size);
	const uint32_t digits = tinyml_high_product((uint32_t)(size << zeros >> 32), factor);
	const float log = (float)digits * tinyml_power_of_two(32 - zeros - TINYML_LOG2_BITS);

	return log2 < 0 ? -log : log;
}

static inline float tinyml_logf(float x)
{
	return tinyml_log_scaled(x, 0, TINYML_LN_2);
}

static inline float tinyml_log10f(float x)
{
	return tinyml_log_scaled(x, 0, TINYML_LOG10_2);
}

static inline float tinyml_expm1f(float x)
{
	if (!(x > -0.4f && x < 0.7f)) {
		return tinyml_expf(x) - 1.0f;
	}
	float p = 2.82848578e-05f;

	p = p * x + 0.000198453345f;
	p = p * x + 0.00138784747f;
	p = p * x + 0.00833344273f;
	p = p * x + 0.041666761f;
	p = p * x + 0.166666657f;
	p = p * x + 0.5f;
	return x + x * (x * p);
}

/* ln(1 + x) for -0.3 < x < 0.42. */
static inline float tinyml_log1p_near_zero(float x)
{
	const float square = x * x;
	float p = 0.0686114952f;

	p = p * x - 0.118264399f;
	p = p * x + 0.119194776f;
	p = p * x - 0.123838097f;
	p = p * x + 0.142126724f;
	p = p * x - 0.166689217f;
	p = p * x + 0.200024724f;
	p = p * x - 0.249999985f;
	p = p * x + 0.333333075f;
	return x - (0.5f * square - x * square * p);
}

static inline float tinyml_log1pf(float x)
{
	if (x > -0.29f && x < 0.41f) {
		return tinyml_log1p_near_zero(x);
	}
	const float sum = 1.0f + x;

	if (!(sum > 0.0f && sum < TINYML_INFINITYF)) {
		return tinyml_logf(sum);
	}
	/* what the sum has lost */
	const float lost = x > 1.0f ? 1.0f - (sum - x) : x - (sum - 1.0f);

	return tinyml_logf(sum) + lost / sum;
}

static inline float tinyml_erff(float x)
{
	const float size = tinyml_fabsf(x);

	if (size < 0.92f) {
		const float z = x * x;
		float p = 8.33409722e-05f;

		p = p * z - 0.000813415973f;
		p = p * z + 0.00520027662f;
		p = p * z - 0.0268590916f;
		p = p * z + 0.112836897f;
		p = p * z - 0.376126319f;
		p = p * z + 0.128379166f;
		return x + x * p;
	}
	if (size > 3.92f) {
		return tinyml_copysignf(1.0f, x);
	}
	float p = 2.10949711e-05f;

	p = p * size - 0.000434461748f;
	p = p * size + 0.004171059f;
	p = p * size - 0.0251194183f;
	p = p * size + 0.108280078f;
	p = p * size + 0.633346915f;
	p = p * size + 1.12951493f;
	p = p * size - 0.0001746833f;
	return x != x ? x : tinyml_copysignf(1.0f - tinyml_expf(-p), x);
}

/* Whether y is a whole number: 0 if not, 1 if odd, 2 if even. */
static inline int32_t tinyml_parity(float y)
{
	const float size = tinyml_fabsf(y);

	if (!(size < 16777216.0f)) {
		return 2; /* as is infinity */
	}
	const int32_t whole = (int32_t)size;

	return (float)whole != size ? 0 : (whole & 1) != 0 ? 1 : 2;
}

/* x^y for x > 0, both finite. */
static inline float tinyml_pow_positive(float x, float y)
{
	const uint32_t bits = tinyml_bits_of_float(y);
	const int32_t exponent = (int32_t)(bits >> 23 & 0xff);
	const int64_t log2 = tinyml_log2_fixed(x);
	const uint64_t size = log2 < 0 ? (uint64_t)-log2 : (uint64_t)log2;

	if (size == 0 || exponent == 0) {
		return 1.0f;
	}
	/* 39 bits of the logarithm times 24 bits of y */
	const int32_t cut = 25 - __builtin_clzll(size);
	const uint64_t digits = cut > 0 ? size >> cut : size;
	const uint64_t product = digits * ((bits & 0x7fffff) | 0x800000);
	const int32_t shift = 32 - TINYML_LOG2_BITS + (cut > 0 ? cut : 0) + exponent - 150;
	const bool negative = (log2 < 0) != (y < 0.0f);

	if (shift <= -64) {
		return 1.0f;
	}
	if (64 - __builtin_clzll(product) + shift > 32 + 8) { /* 256 or more */
		return negative ? 0.0f : TINYML_INFINITYF;
	}
	const int64_t scaled = (int64_t)(shift < 0 ? product >> -shift : product << shift);

	return tinyml_exp2_fixed(negative ? -scaled : scaled);
}

static inline float tinyml_powf(float x, float y)
{
	const float size = tinyml_fabsf(x);

	if (y == 0.0f || x == 1.0f) {
		return 1.0f;
	}
	if (x != x || y != y) {
		return TINYML_NANF;
	}
	const int32_t parity = tinyml_parity(y);
	const bool infinite = !(tinyml_fabsf(y) < TINYML_INFINITYF);
	float power;

	if (infinite && size == 1.0f) {
		return 1.0f;
	}
	if (size == 0.0f || !(size < TINYML_INFINITYF) || infinite) {
		power = (size > 1.0f) == (y > 0.0f) ? TINYML_INFINITYF : 0.0f;
	} else if (x < 0.0f && parity == 0) {
		return TINYML_NANF;
	} else {
		power = tinyml_pow_positive(size, y);
	}
	return parity == 1 ? tinyml_copysignf(power, x) : power;
}

#endif /* TINYML_MATHS_EXP_H_ */
