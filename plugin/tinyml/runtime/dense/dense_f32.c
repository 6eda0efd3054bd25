/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/dense.h>

void tinyml_dense_f32(const struct tinyml_dense_f32 *p, const float *x, float *y)
{
	for (int32_t row = 0; row < p->rows; row++) {
		const float *w = p->weights;

		for (int32_t o = 0; o < p->outputs; o++) {
			float acc = 0.0f;

			for (int32_t i = 0; i < p->inputs; i++) {
				acc += x[i] * w[i];
			}
			w += p->inputs;
			acc += p->bias != NULL ? p->bias[o] : 0.0f;
			acc = acc < p->out_min ? p->out_min : acc;
			*y++ = acc > p->out_max ? p->out_max : acc;
		}
		x += p->inputs;
	}
}
