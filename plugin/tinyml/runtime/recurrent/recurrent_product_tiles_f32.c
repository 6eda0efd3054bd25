/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/recurrent.h>

#include "../weighted/filters_f32.h"

void tinyml_add_product_tiles_f32(float *y, const struct tinyml_matrix *w, int32_t row,
				  const float *x, int32_t rows, int32_t columns)
{
	struct tinyml_filters_f32 gate = {
		.filters = w->gate_rows,
		.filter_size = columns,
		.rows = 1,
		.count = columns,
		.go_on = true,
	};

	for (int32_t first = 0; first < rows; first += w->gate_rows) {
		gate.weights = (const float *)w->values + (row + first) * columns;
		tinyml_filters_f32(&gate, x, &y[first], 1, false);
	}
}
