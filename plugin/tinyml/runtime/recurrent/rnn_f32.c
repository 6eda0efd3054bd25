/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/recurrent.h>

static void rnn_cell(const struct tinyml_recurrent *p, const float *x, float *h, float *c)
{
	const int32_t hidden = p->hidden;
	float *gate = p->scratch;

	(void)c;
	tinyml_start_gates(gate, p, 0, hidden, hidden);
	p->w.add_product(gate, &p->w, 0, x, hidden, p->inputs);
	p->r.add_product(gate, &p->r, 0, h, hidden, hidden);
	for (int32_t i = 0; i < hidden; i++) {
		h[i] = tinyml_activate(p, p->f, gate[i]);
	}
}

void tinyml_rnn_f32(const struct tinyml_recurrent *p)
{
	tinyml_recurrent_run(p, rnn_cell);
}
