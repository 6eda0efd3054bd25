/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/recurrent.h>

static void recurrent_lstm_cell(const struct tinyml_recurrent *p, const float *x, float *h,
				float *c)
{
	const int32_t hidden = p->hidden;
	const float *peep = p->peepholes;
	const struct tinyml_activation f = p->f, g = p->g, last = p->h;
	float *in = p->scratch;
	float *out = &p->scratch[hidden];
	float *forget = &p->scratch[2 * hidden];
	float *fresh = &p->scratch[3 * hidden];

	tinyml_start_gates(in, p, 0, 4 * hidden, 4 * hidden);
	p->w.add_product(in, &p->w, 0, x, 4 * hidden, p->inputs);
	p->r.add_product(in, &p->r, 0, h, 4 * hidden, hidden);
	for (int32_t i = 0; i < hidden; i++) {
		if (peep != NULL) {
			in[i] += peep[i] * c[i];
			forget[i] += peep[2 * hidden + i] * c[i];
		}
		const float add = tinyml_activate(p, f, in[i]);
		const float keep = p->input_forget ? 1.0f - add : tinyml_activate(p, f, forget[i]);

		c[i] = keep * c[i] + add * tinyml_activate(p, g, fresh[i]);
		if (peep != NULL) {
			out[i] += peep[hidden + i] * c[i];
		}
		h[i] = tinyml_activate(p, f, out[i]) * last.function(c[i], last.alpha, last.beta);
	}
}

void tinyml_recurrent_lstm_f32(const struct tinyml_recurrent *p)
{
	tinyml_recurrent_run(p, recurrent_lstm_cell);
}
