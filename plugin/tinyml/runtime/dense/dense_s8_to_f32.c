/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/to_f32.h>

void tinyml_dense_s8_to_f32(const struct tinyml_dense_s8_to_f32 *p, const int8_t *x, float *y)
{
	for (int32_t row = 0; row < p->rows; row++) {
		tinyml_filters_s8_to_f32(&p->filters, x, 0, p->outputs, y);
		x += p->filters.inputs;
		y += p->outputs;
	}
}
