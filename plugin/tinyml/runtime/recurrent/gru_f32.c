/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/recurrent.h>

static void gru_cell(const struct tinyml_recurrent *p, const float *x, float *h, float *c)
{
	const int32_t hidden = p->hidden;
	const struct tinyml_activation f = p->f;
	float *update = p->scratch;
	float *reset = &p->scratch[hidden];
	float *candidate = &p->scratch[2 * hidden];
	const float *own = p->b != NULL ? &p->b[2 * hidden] : NULL;
	const float *recurrent = p->b != NULL ? &p->b[5 * hidden] : NULL;

	(void)c;
	tinyml_start_gates(update, p, 0, 2 * hidden, 3 * hidden);
	if (p->linear_before_reset) {
		/* The reset gate is applied to the product of matrix and state. */
		for (int32_t i = 0; i < hidden; i++) {
			candidate[i] = recurrent != NULL ? recurrent[i] : 0.0f;
		}
		p->r.add_product(update, &p->r, 0, h, 3 * hidden, hidden);
	} else {
		p->r.add_product(update, &p->r, 0, h, 2 * hidden, hidden);
	}
	p->w.add_product(update, &p->w, 0, x, 2 * hidden, p->inputs);
	for (int32_t i = 0; i < 2 * hidden; i++) {
		update[i] = tinyml_activate(p, f, update[i]);
	}
	if (p->linear_before_reset) {
		for (int32_t i = 0; i < hidden; i++) {
			candidate[i] = reset[i] * candidate[i] + (own != NULL ? own[i] : 0.0f);
		}
	} else {
		for (int32_t i = 0; i < hidden; i++) {
			reset[i] *= h[i];
			candidate[i] = own != NULL ? own[i] + recurrent[i] : 0.0f;
		}
		p->r.add_product(candidate, &p->r, 2 * hidden, reset, hidden, hidden);
	}
	p->w.add_product(candidate, &p->w, 2 * hidden, x, hidden, p->inputs);
	for (int32_t i = 0; i < hidden; i++) {
		const float fresh = tinyml_activate(p, p->g, candidate[i]);

		h[i] = (1.0f - update[i]) * fresh + update[i] * h[i];
	}
}

void tinyml_gru_f32(const struct tinyml_recurrent *p)
{
	tinyml_recurrent_run(p, gru_cell);
}
