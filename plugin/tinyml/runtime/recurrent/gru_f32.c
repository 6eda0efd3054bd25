/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/recurrent.h>

static void gru_cell(const struct tinyml_recurrent *p, const float *x, float *h, float *c)
{
	const int32_t hidden = p->hidden;
	float *update = p->scratch;
	float *reset = &p->scratch[hidden];
	float *candidate = &p->scratch[2 * hidden];

	(void)c;
	tinyml_start_gates(update, p, 0, 2 * hidden, 3 * hidden);
	p->r.add_product(update, &p->r, 0, h, 2 * hidden, hidden);
	for (int32_t i = 0; i < hidden; i++) {
		candidate[i] = p->b != NULL ? p->b[2 * hidden + i] : 0.0f;
	}
	p->w.add_product(update, &p->w, 0, x, 3 * hidden, p->inputs);
	for (int32_t i = 0; i < hidden; i++) {
		update[i] = tinyml_activate(p, p->f, update[i]);
		reset[i] = tinyml_activate(p, p->f, reset[i]);
	}
	if (p->linear_before_reset) {
		/* The reset gate is applied to the product of matrix and state. */
		for (int32_t i = 0; i < hidden; i++) {
			float sum = p->b != NULL ? p->b[5 * hidden + i] : 0.0f;

			p->r.add_product(&sum, &p->r, 2 * hidden + i, h, 1, hidden);
			candidate[i] += reset[i] * sum;
		}
	} else {
		for (int32_t i = 0; i < hidden; i++) {
			reset[i] *= h[i];
			candidate[i] += p->b != NULL ? p->b[5 * hidden + i] : 0.0f;
		}
		p->r.add_product(candidate, &p->r, 2 * hidden, reset, hidden, hidden);
	}
	for (int32_t i = 0; i < hidden; i++) {
		const float fresh = tinyml_activate(p, p->g, candidate[i]);

		h[i] = (1.0f - update[i]) * fresh + update[i] * h[i];
	}
}

void tinyml_gru_f32(const struct tinyml_recurrent *p)
{
	tinyml_recurrent_run(p, gru_cell);
}
