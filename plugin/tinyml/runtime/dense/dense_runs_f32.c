/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/dense.h>

void tinyml_dense_runs_f32(const struct tinyml_dense_runs_f32 *p, const float *x, float *y)
{
	const float low = p->out_min;
	const float high = p->out_max;

	for (int32_t row = 0; row < p->rows; row++) {
		const uint16_t *run = p->runs;
		const float *w = p->weights;

		for (int32_t o = 0; o < p->outputs; o++) {
			float v = 0.0f;

			for (int32_t runs = p->counts[o]; runs > 0; runs--) {
				const float *in = x + *run++;
				int32_t left = *run++;

				do {
					v += *in++ * *w++;
				} while (--left != 0);
			}
			v += p->bias != NULL ? p->bias[o] : 0.0f;
			*y++ = v < low ? low : v > high ? high : v;
		}
		x += p->inputs;
	}
}
