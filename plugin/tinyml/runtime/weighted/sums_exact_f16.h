/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * The float16 arithmetic of Helium for processors without it, bit for bit.
 *
 * A double holds the product of two half-precision numbers exactly: 22 bits. The sum of a product
 * and a third number is exact too, or one of the two is so much larger that rounding to float16
 * gives the same with and without the bits that a double has no room for: if the larger one is the
 * product, both are infinite; if it is the number, both are that number.
 */

#ifndef TINYML_SUMS_EXACT_F16_H_
#define TINYML_SUMS_EXACT_F16_H_

#include <string.h>

#include "half_f32.h"

/* The nearest half-precision number; of two, the even one. */
static double sums_exact_rounded(double value)
{
	uint64_t bits, exponent;
	double large, found;

	memcpy(&bits, &value, sizeof(bits));
	exponent = (bits >> 52) & 0x7ffU;
	if (!(value < 65520.0 && value > -65520.0)) {
		return value * 0x1p1023; /* infinite, or still not a number */
	}
	if (exponent < 1023U - 14U) {
		exponent = 1023U - 14U;
	}
	/* The last bit of `large` has the place of the last bit of the result. */
	bits = (exponent + 52U - 10U) << 52 | (uint64_t)1 << 51;
	memcpy(&large, &bits, sizeof(large));
	found = (value + large) - large;
	return found == 0.0 ? value * 0.0 : found; /* with its sign */
}

static uint16_t sums_exact_half(float value)
{
	uint32_t bits, rest, sign;
	float steps;

	memcpy(&bits, &value, sizeof(bits));
	sign = (bits >> 16) & 0x8000U;
	rest = bits & 0x7fffffffU;
	if (rest > 0x7f800000U) {
		rest = 0x7e00U;
	} else if (rest >= 0x477ff000U) { /* 65520 */
		rest = 0x7c00U;
	} else if (rest >= 0x38800000U) { /* the smallest normal number */
		rest = (rest + 0xfffU + ((rest >> 13) & 1U) - (112U << 23)) >> 13;
	} else { /* the last bit of 0.5 is 2**-24 */
		memcpy(&steps, &rest, sizeof(steps));
		steps += 0.5f;
		memcpy(&rest, &steps, sizeof(rest));
		rest -= 0x3f000000U;
	}
	return (uint16_t)(sign | rest);
}

static void tinyml_narrow_f16(const struct tinyml_runs_f16 *r, const float *x, uint16_t *y)
{
	for (int32_t row = 0; row < r->rows; row++) {
		for (int32_t i = 0; i < r->count; i++) {
			y[i] = sums_exact_half(x[i]);
		}
		x += r->x_step;
		y += r->y_step;
	}
}

/* The weights of a filter are `together` apart, beginning with the first. */
static float sums_exact_one(int32_t together, int32_t count, const uint16_t *w, float total,
			    const uint16_t *x)
{
	for (int32_t k = 0; k < count;) {
		const int32_t left = count - k;
		int32_t block = left < TINYML_SUMS_F16_BLOCK ? left : TINYML_SUMS_F16_BLOCK;
		double sum = 0.0;

		for (; block > 0; block--, k++) {
			const double product = (double)tinyml_half_f32(x[k]) *
					       (double)tinyml_half_f32(w[k * together]);

			sum = sums_exact_rounded(sum + product);
		}
		total += (float)sum;
	}
	return total;
}

/* So many filters, which take turns, with one window or two. */
static void tinyml_some_f16(int32_t filters, int32_t count, const uint16_t *w, const float *bias,
			    const uint16_t *x0, const uint16_t *x1, float *y0, float *y1)
{
	for (int32_t i = 0; i < filters; i++) {
		const int32_t lane = filters < 8 ? i : i / 8 * 8 + i % 4 * 2 + i % 8 / 4;
		const float start = bias != NULL ? bias[i] : 0.0f;

		y0[i] = sums_exact_one(filters, count, &w[lane], start, x0);
		if (x1 != NULL) {
			y1[i] = sums_exact_one(filters, count, &w[lane], start, x1);
		}
	}
}

#endif /* TINYML_SUMS_EXACT_F16_H_ */
