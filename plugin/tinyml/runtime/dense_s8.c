/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/dense.h>

#include "gemm_s8.h"
#include "output_s8.h"

static int32_t sum_of(const int8_t *x, int32_t count)
{
	int32_t sum = 0;

	for (int32_t i = 0; i < count; i++) {
		sum += x[i];
	}
	return sum;
}

void tinyml_dense_s8(const struct tinyml_dense_s8 *p, const int8_t *x, int8_t *y)
{
	const struct tinyml_output to =
		tinyml_output(p->round_once, p->out_zero, p->out_min, p->out_max);

	for (int32_t row = 0; row < p->rows; row++, x += p->inputs, y += p->outputs) {
		const int32_t shared =
			p->weight_zero != 0 ? p->weight_zero * sum_of(x, p->inputs) : 0;
		const int8_t *w = p->weights;

		for (int32_t o = 0; o < p->outputs; o += 4) {
			/* The last outputs may be fewer than four: some are then computed twice. */
			const int32_t last = p->outputs - 1 - o;
			const int32_t at[4] = {o, o + (last < 1 ? last : 1),
					       o + (last < 2 ? last : 2),
					       o + (last < 3 ? last : 3)};
			int32_t acc[4];

			for (int32_t i = 0; i < 4; i++) {
				acc[i] = p->bias[at[i]] - shared;
			}
			tinyml_dot_4x1(&w[0], &w[(at[1] - o) * p->inputs],
				       &w[(at[2] - o) * p->inputs], &w[(at[3] - o) * p->inputs], x,
				       p->inputs, acc);
			for (int32_t i = 0; i < 4; i++) {
				y[at[i]] = tinyml_output_s8(acc[i], p->multiplier[at[i]],
							    p->shift[at[i]], &to);
			}
			w += 4 * p->inputs;
		}
	}
}
