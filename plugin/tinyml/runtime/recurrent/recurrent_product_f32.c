/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/recurrent.h>

void tinyml_add_product_f32(float *y, const struct tinyml_matrix *w, int32_t row, const float *x,
			    int32_t rows, int32_t columns)
{
	const float *values = (const float *)w->values + row * columns;

	for (int32_t i = 0; i < rows; i++) {
		float sum = 0.0f;

		for (int32_t k = 0; k < columns; k++) {
			sum += *values++ * x[k];
		}
		y[i] += sum;
	}
}
