/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/recurrent.h>

#include "../weighted/fused_f32.h"

/* Additions have the order of tinyml_filters_f32(), which ends with a bias of 0: the results of
 * both are equal in every bit.
 */

/** Four rows at once: each element of x is loaded once for all of them. */
static const float *recurrent_product_f32_four(float *y, const float *w, const float *x,
					       int32_t columns)
{
	const float *second = w + columns, *third = second + columns, *fourth = third + columns;
	float a = y[0], b = y[1], c = y[2], d = y[3];

	for (int32_t k = 0; k < columns; k++) {
		const float value = x[k];

		a = tinyml_fused_f32(value, *w++, a);
		b = tinyml_fused_f32(value, *second++, b);
		c = tinyml_fused_f32(value, *third++, c);
		d = tinyml_fused_f32(value, *fourth++, d);
	}
	y[0] = a + 0.0f;
	y[1] = b + 0.0f;
	y[2] = c + 0.0f;
	y[3] = d + 0.0f;
	return fourth;
}

void tinyml_add_product_f32(float *y, const struct tinyml_matrix *w, int32_t row, const float *x,
			    int32_t rows, int32_t columns)
{
	const float *values = (const float *)w->values + row * columns;
	int32_t i = 0;

	for (; i + 4 <= rows; i += 4) {
		values = recurrent_product_f32_four(&y[i], values, x, columns);
	}
	for (; i < rows; i++) {
		float sum = y[i];

		for (int32_t k = 0; k < columns; k++) {
			sum = tinyml_fused_f32(x[k], *values++, sum);
		}
		y[i] = sum + 0.0f;
	}
}
