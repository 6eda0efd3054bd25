/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Hyperbolic functions of float and their inverses, at most 2 units in the last place off.
 *
 * tools/maths_coefficients.py computes the coefficients.
 */

#ifndef TINYML_MATHS_HYPERBOLIC_H_
#define TINYML_MATHS_HYPERBOLIC_H_

#include <tinyml/maths_exp.h>

/* sinh(x) for small x, from x and its square. */
static inline float tinyml_sinh_near_zero(float x)
{
	const float z = x * x;
	float p = 2.81695134e-06f;

	p = p * z + 0.000198361595f;
	p = p * z + 0.0083333496f;
	p = p * z + 0.166666672f;
	return x + x * (z * p);
}

/* tanh(x) for small x, from x and its square. */
static inline float tinyml_tanh_near_zero(float x)
{
	const float z = x * x;
	float p = -0.00589515781f;

	p = p * z + 0.0207959712f;
	p = p * z - 0.0537838303f;
	p = p * z + 0.133319244f;
	p = p * z - 0.333332986f;
	return x + x * (z * p);
}

/* asinh(x) for small x, from x and its square. */
static inline float tinyml_asinh_near_zero(float x)
{
	const float z = x * x;
	float p = -0.0132375248f;

	p = p * z + 0.0281691235f;
	p = p * z - 0.0443845168f;
	p = p * z + 0.0749865249f;
	p = p * z - 0.166666433f;
	return x + x * (z * p);
}

/* atanh(x) for small x, from x and its square. */
static inline float tinyml_atanh_near_zero(float x)
{
	const float z = x * x;
	float p = 0.17669116f;

	p = p * z + 0.0513582639f;
	p = p * z + 0.118237294f;
	p = p * z + 0.14222762f;
	p = p * z + 0.200025186f;
	p = p * z + 0.333333015f;
	return x + x * (z * p);
}

static inline float tinyml_sinhf(float x)
{
	const float size = tinyml_fabsf(x);

	if (size < 1.0f) {
		return tinyml_sinh_near_zero(x);
	}
	const float half = tinyml_exp_scaled(size, -1);

	return tinyml_copysignf(half - 0.25f / half, x);
}

static inline float tinyml_coshf(float x)
{
	const float half = tinyml_exp_scaled(tinyml_fabsf(x), -1);

	return half + 0.25f / half;
}

static inline float tinyml_tanhf(float x)
{
	const float size = tinyml_fabsf(x);

	if (size < 0.6f) {
		return tinyml_tanh_near_zero(x);
	}
	if (size > 9.02f) {
		return tinyml_copysignf(1.0f, x);
	}
	return x != x ? x : tinyml_copysignf(1.0f - 2.0f / (tinyml_expf(2.0f * size) + 1.0f), x);
}

static inline float tinyml_asinhf(float x)
{
	const float size = tinyml_fabsf(x);

	if (size < 0.5f) {
		return tinyml_asinh_near_zero(x);
	}
	if (!(size < 4096.0f)) {
		return tinyml_copysignf(tinyml_log_scaled(size, 1, TINYML_LN_2), x);
	}
	const float square = size * size;
	const float beyond = size + square / (1.0f + tinyml_sqrtf(1.0f + square));

	return tinyml_copysignf(tinyml_log1pf(beyond), x);
}

static inline float tinyml_acoshf(float x)
{
	const float t = x - 1.0f;

	if (!(x < 4096.0f)) {
		return tinyml_log_scaled(x, 1, TINYML_LN_2);
	}
	if (!(t < 0.5f)) {
		return tinyml_log1pf(t + tinyml_sqrtf(t * (t + 2.0f)));
	}
	const float root = tinyml_sqrtf(2.0f * t); /* NaN if x < 1 */
	float p = 0.000143245532f;

	p = p * t - 0.000624374545f;
	p = p * t + 0.00187580951f;
	p = p * t - 0.0055766562f;
	p = p * t + 0.0187497232f;
	p = p * t - 0.0833333284f;
	return root + root * (t * p);
}

static inline float tinyml_atanhf(float x)
{
	const float size = tinyml_fabsf(x);

	if (size < 0.5f) {
		return tinyml_atanh_near_zero(x);
	}
	return tinyml_copysignf(0.5f * tinyml_log1pf(2.0f * size / (1.0f - size)), x);
}

#endif /* TINYML_MATHS_HYPERBOLIC_H_ */
