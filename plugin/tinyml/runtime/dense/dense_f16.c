/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/half_weights.h>

#include "../weighted/filters_f32.h"
#include "../weighted/sums_f16.h"

void tinyml_dense_f16(const struct tinyml_dense_f32_f16 *p, const float *x, float *y, void *scratch)
{
	const struct tinyml_sums_f16 sums = {p->outputs, p->inputs, p->weights, p->bias};

	tinyml_rows_f16(&sums, x, y, p->rows, false, scratch);
	tinyml_limit_f32(y, p->rows * p->outputs, p->out_min, p->out_max);
}
