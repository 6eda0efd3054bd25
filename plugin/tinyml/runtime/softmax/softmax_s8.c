/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>

#include <tinyml/fixed_point.h>
#include <tinyml/softmax.h>
#include <tinyml/tinyml.h>
#include <tinyml/transcendental.h>

/* exp of a difference to the largest element, between 0 and 1. */
static int32_t softmax_s8_exp_of_difference(const struct tinyml_softmax_s8 *p, int32_t difference)
{
	const int32_t raised = (int32_t)((uint32_t)difference << p->left_shift);

	return tinyml_exp_q5(tinyml_doubling_high_multiply(raised, p->multiplier));
}

static void softmax_s8_row(const struct tinyml_softmax_s8 *p, const int8_t *x, int8_t *y)
{
	int32_t largest = INT8_MIN;
	int32_t sum = 0; /* Q12.19 */

	for (int32_t i = 0; i < p->depth; i++) {
		largest = x[i] > largest ? x[i] : largest;
	}
	for (int32_t i = 0; i < p->depth; i++) {
		if (x[i] - largest >= p->least_difference) {
			sum += tinyml_rounding_shift_right(
				softmax_s8_exp_of_difference(p, x[i] - largest), 12);
		}
	}

	TINYML_ASSERT(sum > 0); /* the largest element contributes exp(0) */

	const int32_t zeros = tinyml_leading_zeros((uint32_t)sum);
	const int32_t factor =
		tinyml_one_over_one_plus((int32_t)(((uint32_t)sum << zeros) - (UINT32_C(1) << 31)));
	const int32_t shift = 12 - zeros + 31 - 8;

	for (int32_t i = 0; i < p->depth; i++) {
		int32_t value = 0;

		if (x[i] - largest >= p->least_difference) {
			value = tinyml_doubling_high_multiply(
				softmax_s8_exp_of_difference(p, x[i] - largest), factor);
			/* 512 elements as large as the largest: none has as much as half a step */
			value = shift > 31 ? 0 : tinyml_rounding_shift_right(value, shift);
		}
		y[i] = (int8_t)tinyml_clamp(value + INT8_MIN, INT8_MIN, INT8_MAX);
	}
}

void tinyml_softmax_s8(const struct tinyml_softmax_s8 *p, const int8_t *x, int8_t *y)
{
	for (int32_t r = 0; r < p->rows; r++) {
		softmax_s8_row(p, &x[r * p->depth], &y[r * p->depth]);
	}
}
