/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * A float dense layer, for both kinds of weights. The file that includes this defines DENSE_PARAMS,
 * the structure of the parameters.
 */

#ifndef TINYML_DENSE_ROWS_F32_H_
#define TINYML_DENSE_ROWS_F32_H_

#include "../weighted/filters_f32.h"

static inline void dense_rows_f32(const DENSE_PARAMS *p, const float *x, float *y)
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
		TINYML_FILTERS(&filters, x, y, p->rows / 2, true);
	}
	if (p->rows % 2 != 0) {
		TINYML_FILTERS(&filters, &x[last * inputs], &y[last * outputs], 1, false);
	}
	tinyml_limit_f32(y, p->rows * outputs, p->out_min, p->out_max);
}

#endif /* TINYML_DENSE_ROWS_F32_H_ */
