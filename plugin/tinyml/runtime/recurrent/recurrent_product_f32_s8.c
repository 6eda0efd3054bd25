/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/recurrent.h>

/** Four rows at once: each element of x is loaded once for all of them. Sums keep their order. */
static const int8_t *recurrent_product_f32_s8_four(float *y, const int8_t *w, const float *scales,
						   const float *x, int32_t columns)
{
	const int8_t *second = w + columns, *third = second + columns, *fourth = third + columns;
	float a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;

	for (int32_t k = 0; k < columns; k++) {
		const float value = x[k];

		a += (float)*w++ * value;
		b += (float)*second++ * value;
		c += (float)*third++ * value;
		d += (float)*fourth++ * value;
	}
	y[0] += a * scales[0];
	y[1] += b * scales[1];
	y[2] += c * scales[2];
	y[3] += d * scales[3];
	return fourth;
}

void tinyml_add_product_f32_s8(float *y, const struct tinyml_matrix *w, int32_t row, const float *x,
			       int32_t rows, int32_t columns)
{
	const int8_t *values = (const int8_t *)w->values + row * columns;
	int32_t i = 0;

	for (; i + 4 <= rows; i += 4) {
		values = recurrent_product_f32_s8_four(&y[i], values, &w->scales[row + i], x,
						       columns);
	}
	for (; i < rows; i++) {
		float sum = 0.0f;

		for (int32_t k = 0; k < columns; k++) {
			sum += *values++ * x[k];
		}
		y[i] += sum * w->scales[row + i];
	}
}
