/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Trigonometric functions of float, at most 2 units in the last place off, for any argument.
 *
 * tools/maths_coefficients.py computes the coefficients.
 */

#ifndef TINYML_MATHS_TRIG_H_
#define TINYML_MATHS_TRIG_H_

#include <tinyml/maths_bits.h>

#define TINYML_PI         3.14159265f
#define TINYML_HALF_PI    1.57079633f
#define TINYML_QUARTER_PI 0.785398163f

/* An angle less a multiple of a quarter turn: between -pi / 4 and pi / 4. */
struct tinyml_angle {
	float rest;
	float lost;        /* by rounding it to a float */
	uint32_t quarters; /* modulo 4 */
};

/* Up to this, quarter turns times the first two parts of pi / 2 are exact: 12 bits each. */
#define TINYML_MODERATE_ANGLE 4096.0f

/* With the FPU, for moderate angles: pi / 2 in three parts. */
static inline struct tinyml_angle tinyml_reduce_moderate_angle(float x)
{
	const int32_t quarters = (int32_t)(x * 0.636619772f + (x < 0.0f ? -0.5f : 0.5f));
	const float count = (float)quarters;
	const float first = x - count * 1.57080078f; /* exact */
	const float second = count * -4.45358455e-06f;
	const float third = count * -8.70551575e-10f;
	const float rough = first - second;
	const float rest = rough - third;

	return (struct tinyml_angle){
		rest,
		((rough - rest) - third) + ((first - rough) - second),
		(uint32_t)quarters & 3,
	};
}

/* For any angle, in integers: those digits of 2 / pi that decide about the last quarter turns,
 * times the mantissa.
 */
static inline struct tinyml_angle tinyml_reduce_angle(float x)
{
	static const uint32_t two_over_pi[] = {0u,          0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
					       0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
	const uint32_t bits = tinyml_bits_of_float(x);
	const int32_t exponent = (int32_t)(bits >> 23 & 0xff);

	if (tinyml_fabsf(x) < TINYML_QUARTER_PI || exponent == 255) {
		return (struct tinyml_angle){x - (exponent == 255 ? x : 0.0f), 0.0f, 0};
	}
#if !defined(__arm__) || defined(__ARM_FP) /* integers are faster than emulated floats */
	if (tinyml_fabsf(x) < TINYML_MODERATE_ANGLE) {
		const struct tinyml_angle angle = tinyml_reduce_moderate_angle(x);

		if (tinyml_fabsf(angle.rest) > 0.0009765625f) { /* little enough has cancelled */
			return angle;
		}
	}
#endif
	const uint32_t mantissa = (bits & 0x7fffff) | 0x800000;
	const uint32_t *const from = &two_over_pi[(exponent - 120) >> 5];
	const int32_t start = (exponent - 120) & 31;
	uint32_t part[3];

	for (int32_t i = 0; i < 3; i++) {
		part[i] = start == 0 ? from[i] : from[i] << start | from[i + 1] >> (32 - start);
	}
	/* quarter turns modulo 4 in Q62 */
	const uint64_t turns = ((uint64_t)(mantissa * part[0]) << 32) +
			       (uint64_t)mantissa * part[1] +
			       (((uint64_t)mantissa * part[2]) >> 32);
	const uint64_t quarters = (turns + ((uint64_t)1 << 61)) >> 62;
	const int64_t rest = (int64_t)(turns - (quarters << 62));
	const uint64_t size = rest < 0 ? (uint64_t)-rest : (uint64_t)rest;
	const int32_t zeros = __builtin_clzll(size | 1);
	const uint32_t digits =
		(uint32_t)(((size << zeros >> 32) * 3373259426u) >> 32); /* times pi / 2 */
	const float rounded = (float)digits;
	const bool negative = (bits >> 31) != 0;
	const float unit = tinyml_copysignf(tinyml_power_of_two(-29 - zeros),
					    (rest < 0) != negative ? -1.0f : 1.0f);

	return (struct tinyml_angle){
		rounded * unit,
		(float)(int32_t)(digits - (uint32_t)rounded) * unit,
		(uint32_t)(negative ? 0 - quarters : quarters) & 3,
	};
}

static inline float tinyml_sin_near_zero(float x, float lost)
{
	const float z = x * x;
	float p = -0.000195152825f;

	p = p * z + 0.0083321603f;
	p = p * z - 0.166666552f;
	return x + (x * (z * p) + lost);
}

static inline float tinyml_cos_near_zero(float x, float lost)
{
	const float z = x * x;
	float p = 2.44383646e-05f;

	p = p * z - 0.00138873665f;
	p = p * z + 0.0416666456f;
	return 1.0f - (0.5f * z - (z * z * p - x * lost));
}

static inline float tinyml_sin_of(struct tinyml_angle angle)
{
	const float y = (angle.quarters & 1) != 0 ? tinyml_cos_near_zero(angle.rest, angle.lost)
						  : tinyml_sin_near_zero(angle.rest, angle.lost);

	return (angle.quarters & 2) != 0 ? -y : y;
}

static inline float tinyml_sinf(float x)
{
	return tinyml_sin_of(tinyml_reduce_angle(x));
}

static inline float tinyml_cosf(float x)
{
	struct tinyml_angle angle = tinyml_reduce_angle(x);

	angle.quarters++;
	return tinyml_sin_of(angle);
}

static inline float tinyml_tanf(float x)
{
	const struct tinyml_angle angle = tinyml_reduce_angle(x);
	const float z = angle.rest * angle.rest;
	float p = 0.00437629223f;

	p = p * z + 8.94904806e-05f;
	p = p * z + 0.0108358581f;
	p = p * z + 0.0212821662f;
	p = p * z + 0.0540599227f;
	p = p * z + 0.133326635f;
	p = p * z + 0.333333492f;
	const float tan = angle.rest + (angle.rest * (z * p) + angle.lost * (1.0f + z));

	return (angle.quarters & 1) != 0 ? -1.0f / tan : tan;
}

/* asin(x) for |x| <= 0.55. */
static inline float tinyml_asin_near_zero(float x)
{
	const float z = x * x;
	float p = 0.0451581366f;

	p = p * z + 0.00869145337f;
	p = p * z + 0.0334082693f;
	p = p * z + 0.0443158597f;
	p = p * z + 0.075015977f;
	p = p * z + 0.166666403f;
	return x + x * (z * p);
}

static inline float tinyml_asinf(float x)
{
	const float size = tinyml_fabsf(x);

	if (size < 0.55f) {
		return tinyml_asin_near_zero(x);
	}
	const float rest = tinyml_asin_near_zero(tinyml_sqrtf(0.5f * (1.0f - size)));

	return tinyml_copysignf(TINYML_HALF_PI - (2.0f * rest + 4.37113883e-8f), x);
}

static inline float tinyml_acosf(float x)
{
	if (tinyml_fabsf(x) < 0.55f) {
		return TINYML_HALF_PI - (tinyml_asin_near_zero(x) + 4.37113883e-8f);
	}
	const float rest = tinyml_asin_near_zero(tinyml_sqrtf(0.5f * (1.0f - tinyml_fabsf(x))));

	return x > 0.0f ? 2.0f * rest : TINYML_PI - (2.0f * rest + 8.74227766e-8f);
}

/* atan(y / x) for 0 <= y, 0 <= x, not both 0 nor both infinite. */
static inline float tinyml_atan_of_ratio(float y, float x)
{
	const bool steep = y > x;
	const float low = steep ? x : y;
	const float high = steep ? y : x;
	/* above about half a radian: the angle to pi / 4 */
	const bool diagonal = low > 0.55f * high;
	const float t = diagonal ? (low - high) / (low + high) : low / high;
	const float z = t * t;
	float p = 0.033985734f;

	p = p * z - 0.0763171017f;
	p = p * z + 0.10844031f;
	p = p * z - 0.142600581f;
	p = p * z + 0.199988455f;
	p = p * z - 0.333333164f;
	const float angle = t + t * (z * p);

	if (!diagonal) {
		return steep ? TINYML_HALF_PI - (angle + 4.37113883e-8f) : angle;
	}
	return TINYML_QUARTER_PI + (steep ? -angle - 2.18556941e-8f : angle - 2.18556941e-8f);
}

static inline float tinyml_atanf(float x)
{
	return x != x ? x : tinyml_copysignf(tinyml_atan_of_ratio(tinyml_fabsf(x), 1.0f), x);
}

static inline float tinyml_atan2f(float y, float x)
{
	float high = tinyml_fabsf(y), right = tinyml_fabsf(x);

	if (x != x || y != y) {
		return TINYML_NANF;
	}
	if (high == right) { /* also zeros and infinities */
		right = 1.0f;
		high = high == 0.0f ? 0.0f : 1.0f;
	}
	if (high > 1.0e38f || right > 1.0e38f) { /* their sum must be finite */
		const bool finite = high < TINYML_INFINITYF && right < TINYML_INFINITYF;

		high = finite ? 0.25f * high : high < TINYML_INFINITYF ? 0.0f : 1.0f;
		right = finite ? 0.25f * right : right < TINYML_INFINITYF ? 0.0f : 1.0f;
	}
	const float angle = tinyml_atan_of_ratio(high, right);
	const bool left = (tinyml_bits_of_float(x) >> 31) != 0;

	return tinyml_copysignf(left ? TINYML_PI - (angle + 8.74227766e-8f) : angle, y);
}

#endif /* TINYML_MATHS_TRIG_H_ */
