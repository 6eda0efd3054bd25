/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/block_weights.h>

#include "block_sums_f32.h"

void tinyml_row_f32_s8(const struct tinyml_steps_s8 *p, int32_t row, float *y)
{
	const int32_t blocks = (p->inputs + p->block - 1) / p->block;
	const int8_t *w = &p->weights[row * p->inputs];
	const float *scale = &p->scales[row * blocks];
	const int16_t *zero = p->zeros != NULL ? &p->zeros[row * blocks] : NULL;

	for (int32_t at = 0; at < p->inputs; scale++) {
		const int32_t end = tinyml_block_end(at, p->block, p->inputs);
		const int32_t centre = zero != NULL ? *zero++ : 0;

		for (; at < end; at++) {
			*y++ = (float)(*w++ - centre) * *scale;
		}
	}
}
