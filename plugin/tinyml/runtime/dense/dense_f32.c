/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/dense.h>

#include "../weighted/tile_f32.h"

static float dense_f32_finish(const struct tinyml_dense_f32 *p, float sum, int32_t output)
{
	sum += p->bias != NULL ? p->bias[output] : 0.0f;
	sum = sum < p->out_min ? p->out_min : sum;
	return sum > p->out_max ? p->out_max : sum;
}

void tinyml_dense_f32(const struct tinyml_dense_f32 *p, const float *x, float *y)
{
	const int32_t inputs = p->inputs, outputs = p->outputs;

	for (int32_t row = 0; row < p->rows; row++, x += inputs, y += outputs) {
		const float *w = p->weights;
		int32_t o = 0;

		for (; outputs - o >= TINYML_TILE; o += TINYML_TILE, w += TINYML_TILE * inputs) {
			float sums[TINYML_TILE] = {0.0f};

			tinyml_tile_f32(x, w, inputs, sums);
			for (int32_t i = 0; i < TINYML_TILE; i++) {
				y[o + i] = dense_f32_finish(p, sums[i], o + i);
			}
		}
		if (outputs - o >= 4) {
			float sums[4] = {0.0f};

			tinyml_tile4_f32(x, w, inputs, sums);
			for (int32_t i = 0; i < 4; i++, o++, w += inputs) {
				y[o] = dense_f32_finish(p, sums[i], o);
			}
		}
		for (; o < outputs; o++, w += inputs) {
			y[o] = dense_f32_finish(p, tinyml_dot_f32(x, w, inputs, 0.0f), o);
		}
	}
}
