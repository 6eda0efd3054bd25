/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Between real numbers and quantised integers; for generated code and for applications. */

#ifndef TINYML_QUANTIZE_H_
#define TINYML_QUANTIZE_H_

#include <stdint.h>

/* Far outside every quantised type, yet safe to convert to int32_t. */
#define TINYML_QUANTIZE_LIMIT 1.0e9f

static inline int32_t tinyml_quantize_clamp(int32_t rounded, int32_t zero_point, int32_t low,
					    int32_t high)
{
	const int32_t q = rounded + zero_point;

	return q < low ? low : q > high ? high : q;
}

static inline float tinyml_quantize_bound(float steps)
{
	/* Written so that a NaN ends at the lower limit. */
	if (!(steps > -TINYML_QUANTIZE_LIMIT)) {
		return -TINYML_QUANTIZE_LIMIT;
	}
	return steps < TINYML_QUANTIZE_LIMIT ? steps : TINYML_QUANTIZE_LIMIT;
}

/** Quantise one value, halves rounded to even (ONNX). */
static inline int32_t tinyml_quantize_even(float x, float scale, int32_t zero_point, int32_t low,
					   int32_t high)
{
	const float steps = tinyml_quantize_bound(x / scale);
	int32_t whole = (int32_t)steps;
	const float rest = steps - (float)whole;

	if (rest > 0.5f || (rest == 0.5f && (whole & 1) != 0)) {
		whole++;
	} else if (rest < -0.5f || (rest == -0.5f && (whole & 1) != 0)) {
		whole--;
	}
	return tinyml_quantize_clamp(whole, zero_point, low, high);
}

/** Quantise one value, halves rounded away from zero (TensorFlow Lite). */
static inline int32_t tinyml_quantize_away(float x, float scale, int32_t zero_point, int32_t low,
					   int32_t high)
{
	const float steps = tinyml_quantize_bound(x / scale);
	int32_t whole = (int32_t)steps;
	const float rest = steps - (float)whole;

	if (rest >= 0.5f) {
		whole++;
	} else if (rest <= -0.5f) {
		whole--;
	}
	return tinyml_quantize_clamp(whole, zero_point, low, high);
}

#endif /* TINYML_QUANTIZE_H_ */
