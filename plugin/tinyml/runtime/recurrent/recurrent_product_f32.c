/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/recurrent.h>

/** Four rows at once: each element of x is loaded once for all of them. Sums keep their order. */
static const float *recurrent_product_four(float *y, const float *w, const float *x,
					   int32_t columns)
{
	const float *second = w + columns, *third = second + columns, *fourth = third + columns;
	float a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;

	for (int32_t k = 0; k < columns; k++) {
		const float value = x[k];

		a += *w++ * value;
		b += *second++ * value;
		c += *third++ * value;
		d += *fourth++ * value;
	}
	y[0] += a;
	y[1] += b;
	y[2] += c;
	y[3] += d;
	return fourth;
}

void tinyml_add_product_f32(float *y, const struct tinyml_matrix *w, int32_t row, const float *x,
			    int32_t rows, int32_t columns)
{
	const float *values = (const float *)w->values + row * columns;
	int32_t i = 0;

	for (; i + 4 <= rows; i += 4) {
		values = recurrent_product_four(&y[i], values, x, columns);
	}
	for (; i < rows; i++) {
		float sum = 0.0f;

		for (int32_t k = 0; k < columns; k++) {
			sum += *values++ * x[k];
		}
		y[i] += sum;
	}
}
