/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/conv_s16.h>

void tinyml_dense_s16(const struct tinyml_dense_s16 *p, const int16_t *x, int16_t *y)
{
	for (int32_t row = 0; row < p->rows; row++) {
		const int8_t *w = p->weights;

		for (int32_t o = 0; o < p->outputs; o++) {
			int64_t acc = p->bias != NULL ? p->bias[o] : 0;

			acc = tinyml_add_products_s16(acc, x, w, p->inputs);
			w += p->inputs;
			*y++ = p->round_once
				       ? tinyml_narrow_s64_once(acc, p->multiplier[o], p->shift[o],
								p->out_min, p->out_max)
				       : tinyml_narrow_s64(acc, p->multiplier[o], p->shift[o],
							   p->out_min, p->out_max);
		}
		x += p->inputs;
	}
}
