/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>

#include <tinyml/fixed_point.h>
#include <tinyml/softmax.h>
#include <tinyml/tinyml.h>
#include <tinyml/transcendental.h>

/* A table of 513 values over the whole range of int16, interpolated. */
static int32_t softmax_s16_interpolate(const int16_t *table, int32_t x)
{
	const int32_t value = tinyml_clamp(x, INT16_MIN, INT16_MAX);
	const int16_t *at = &table[256 + (value >> 7)];

	return at[0] + (((at[1] - at[0]) * (value & 127) + 64) >> 7);
}

static void softmax_s16_row(const struct tinyml_softmax_s16 *p, const int16_t *x, int16_t *y)
{
	int32_t largest = INT16_MIN;
	int32_t sum = 0; /* Q16.15 */

	for (int32_t i = 0; i < p->depth; i++) {
		largest = x[i] > largest ? x[i] : largest;
	}
	for (int32_t i = 0; i < p->depth; i++) {
		const int32_t scaled = tinyml_rescale(x[i] - largest, p->multiplier, p->shift);

		y[i] = (int16_t)softmax_s16_interpolate(p->exp, scaled + INT16_MAX);
		sum += y[i];
	}

	TINYML_ASSERT(sum > 0); /* the largest element contributes exp(0) */

	const int32_t zeros = tinyml_leading_zeros((uint32_t)sum);
	const int32_t shift = 31 - zeros;
	const int64_t raised = (int64_t)sum * (INT64_C(1) << (zeros - 1));
	/* the table has 1 / (1 + x) for x from 0 to 1 */
	const int32_t x_less_half = (int32_t)((raised + (1 << 13)) >> 14) - (1 << 15) - (1 << 16);
	const int64_t factor = softmax_s16_interpolate(p->reciprocal, x_less_half);

	for (int32_t i = 0; i < p->depth; i++) {
		const int64_t value = (y[i] * factor + (INT64_C(1) << (shift - 1))) >> shift;

		y[i] = (int16_t)tinyml_clamp((int32_t)value, 0, INT16_MAX);
	}
}

void tinyml_softmax_s16(const struct tinyml_softmax_s16 *p, const int16_t *x, int16_t *y)
{
	for (int32_t r = 0; r < p->rows; r++) {
		softmax_s16_row(p, &x[r * p->depth], &y[r * p->depth]);
	}
}
