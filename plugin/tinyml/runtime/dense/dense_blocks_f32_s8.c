/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/block_weights.h>

#include "../weighted/block_sums_f32.h"

void tinyml_dense_blocks_f32_s8(const struct tinyml_dense_blocks_f32_s8 *p, const float *x,
				float *y, float *sums)
{
	const int32_t inputs = p->steps.inputs, block = p->steps.block;

	for (int32_t row = 0; row < p->rows; row++, x += inputs) {
		const int8_t *w = p->steps.weights;
		const float *scale = p->steps.scales;
		const int16_t *zero = p->steps.zeros;

		if (zero != NULL) {
			tinyml_block_sums(x, inputs, block, sums);
		}
		for (int32_t o = 0; o < p->outputs; o++) {
			float v = p->bias != NULL ? p->bias[o] : 0.0f;
			const float *sum = sums;
			int32_t at = 0;

			while (at < inputs) {
				const int32_t end = tinyml_block_end(at, block, inputs);
				float dot = 0.0f;

				for (; at < end; at++) {
					dot += x[at] * *w++;
				}
				if (zero != NULL) {
					dot -= *zero++ * *sum++;
				}
				v += dot * *scale++;
			}
			*y++ = v < p->out_min ? p->out_min : v > p->out_max ? p->out_max : v;
		}
	}
}
