/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/byte_weights.h>

void tinyml_dense_f32_s8(const struct tinyml_dense_f32_s8 *p, const float *x, float *y)
{
	for (int32_t row = 0; row < p->rows; row++) {
		for (int32_t o = 0; o < p->outputs; o++) {
			const int8_t *w = &p->weights[o * p->inputs];
			float v = 0.0f;

			for (int32_t i = 0; i < p->inputs; i++) {
				v += x[i] * w[i];
			}
			v = v * p->scales[o] + (p->bias != NULL ? p->bias[o] : 0.0f);
			*y++ = v < p->out_min ? p->out_min : v > p->out_max ? p->out_max : v;
		}
		x += p->inputs;
	}
}
