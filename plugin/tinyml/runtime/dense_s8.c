/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/dense.h>
#include <tinyml/fixed_point.h>

void tinyml_dense_s8(const struct tinyml_dense_s8 *p, const int8_t *x, int8_t *y)
{
	for (int32_t row = 0; row < p->rows; row++) {
		const int8_t *w = p->weights;

		for (int32_t o = 0; o < p->outputs; o++) {
			int32_t acc = p->bias != NULL ? p->bias[o] : 0;

			for (int32_t i = 0; i < p->inputs; i++) {
				acc += (x[i] - p->in_zero) * (w[i] - p->weight_zero);
			}
			w += p->inputs;
			acc = tinyml_rescale(acc, p->multiplier[o], p->shift[o]);
			*y++ = (int8_t)tinyml_clamp(acc + p->out_zero, p->out_min, p->out_max);
		}
		x += p->inputs;
	}
}
