/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/dense.h>

void tinyml_dense_sparse_f32(const struct tinyml_dense_sparse_f32 *p, const float *x, float *y)
{
	for (int32_t row = 0; row < p->rows; row++) {
		const float *w = p->weights;
		const uint16_t *place = p->places;

		for (int32_t o = 0; o < p->outputs; o++) {
			const float *const end = w + p->counts[o];
			float acc = 0.0f;

			while (w < end) {
				acc += x[*place++] * *w++;
			}
			acc += p->bias != NULL ? p->bias[o] : 0.0f;
			acc = acc < p->out_min ? p->out_min : acc;
			*y++ = acc > p->out_max ? p->out_max : acc;
		}
		x += p->inputs;
	}
}
