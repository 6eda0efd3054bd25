/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/dense.h>

#include "../weighted/filters_f32.h"

void tinyml_dense_f32(const struct tinyml_dense_f32 *p, const float *x, float *y)
{
	const int32_t inputs = p->inputs, outputs = p->outputs, last = p->rows - 1;
	const struct tinyml_filters_f32 filters = {
		.filters = outputs,
		.filter_size = inputs,
		.rows = 1,
		.count = inputs,
		.x_other = inputs,
		.y_other = outputs,
		.x_next = 2 * inputs,
		.y_next = 2 * outputs,
		.weights = p->weights,
		.bias = p->bias,
	};

	if (p->rows > 1) {
		tinyml_filters_f32(&filters, x, y, p->rows / 2, true);
	}
	if (p->rows % 2 != 0) {
		tinyml_filters_f32(&filters, &x[last * inputs], &y[last * outputs], 1, false);
	}
	tinyml_limit_f32(y, p->rows * outputs, p->out_min, p->out_max);
}
