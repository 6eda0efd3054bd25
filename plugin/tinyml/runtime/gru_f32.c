/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/recurrent.h>

/* The reset gate acts on what the recurrent matrix makes of the state. */
static void reset_behind(const struct tinyml_recurrent *p, const float *h, const float *reset,
			 float *candidate)
{
	const int32_t hidden = p->hidden;

	for (int32_t i = 0; i < hidden; i++) {
		const float *r = &p->r[(2 * hidden + i) * hidden];
		float sum = p->b != NULL ? p->b[5 * hidden + i] : 0.0f;

		for (int32_t k = 0; k < hidden; k++) {
			sum += r[k] * h[k];
		}
		candidate[i] += reset[i] * sum;
	}
}

static void cell(const struct tinyml_recurrent *p, const float *x, float *h, float *c)
{
	const int32_t hidden = p->hidden;
	float *update = p->scratch;
	float *reset = &p->scratch[hidden];
	float *candidate = &p->scratch[2 * hidden];

	(void)c;
	tinyml_start_gates(update, p, 0, 2 * hidden, 3 * hidden);
	tinyml_add_product(update, p->r, h, 2 * hidden, hidden);
	for (int32_t i = 0; i < hidden; i++) {
		candidate[i] = p->b != NULL ? p->b[2 * hidden + i] : 0.0f;
	}
	tinyml_add_product(update, p->w, x, 3 * hidden, p->inputs);
	for (int32_t i = 0; i < hidden; i++) {
		update[i] = tinyml_activate(p, p->f, update[i]);
		reset[i] = tinyml_activate(p, p->f, reset[i]);
	}
	if (p->linear_before_reset) {
		reset_behind(p, h, reset, candidate);
	} else {
		for (int32_t i = 0; i < hidden; i++) {
			reset[i] *= h[i];
			candidate[i] += p->b != NULL ? p->b[5 * hidden + i] : 0.0f;
		}
		tinyml_add_product(candidate, &p->r[2 * hidden * hidden], reset, hidden, hidden);
	}
	for (int32_t i = 0; i < hidden; i++) {
		const float fresh = tinyml_activate(p, p->g, candidate[i]);

		h[i] = (1.0f - update[i]) * fresh + update[i] * h[i];
	}
}

void tinyml_gru_f32(const struct tinyml_recurrent *p)
{
	tinyml_recurrent_run(p, cell);
}
