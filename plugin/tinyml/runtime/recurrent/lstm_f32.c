/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/lstm_f32.h>
#include <tinyml/maths.h>

enum { INPUT, FORGET, CELL, OUTPUT };

static float lstm_f32_dot(const float *a, const float *b, int32_t length)
{
	float sum = 0.0f;

	for (int32_t i = 0; i < length; i++) {
		sum += a[i] * b[i];
	}
	return sum;
}

static float lstm_f32_clip(float x, float limit)
{
	if (limit <= 0.0f) {
		return x;
	}
	return x > limit ? limit : x < -limit ? -limit : x;
}

static float lstm_f32_sigmoid(float x)
{
	return 1.0f / (1.0f + tinyml_expf(-x));
}

/* One gate of one step, before peephole and activation. */
static void lstm_f32_accumulate_gate(const struct tinyml_lstm_f32 *p,
				     const struct tinyml_lstm_gate_f32 *gate, const float *x,
				     const float *state, float *to)
{
	for (int32_t i = 0; i < p->cells && gate->weights != NULL; i++) {
		to[i] = lstm_f32_dot(x, &gate->weights[i * p->inputs], p->inputs) +
			lstm_f32_dot(state, &gate->recurrent[i * p->outputs], p->outputs) +
			gate->bias[i];
	}
}

static float lstm_f32_with_peephole(const struct tinyml_lstm_gate_f32 *gate, float sum, float cell,
				    int32_t i)
{
	return gate->peephole != NULL ? sum + cell * gate->peephole[i] : sum;
}

static void lstm_f32_step(const struct tinyml_lstm_f32 *p, const float *x, float *state,
			  float *cell, float *gates)
{
	float *const out = &gates[OUTPUT * p->cells];

	for (int32_t g = 0; g < 4; g++) {
		lstm_f32_accumulate_gate(p, &p->gates[g], x, state, &gates[g * p->cells]);
	}
	for (int32_t i = 0; i < p->cells; i++) {
		const float forget = lstm_f32_sigmoid(lstm_f32_with_peephole(
			&p->gates[FORGET], gates[FORGET * p->cells + i], cell[i], i));
		float in = 1.0f - forget;

		if (p->gates[INPUT].weights != NULL) {
			in = lstm_f32_sigmoid(
				lstm_f32_with_peephole(&p->gates[INPUT], gates[i], cell[i], i));
		}
		cell[i] = lstm_f32_clip(forget * cell[i] +
						in * tinyml_tanhf(gates[CELL * p->cells + i]),
					p->cell_clip);
		out[i] = lstm_f32_sigmoid(
				 lstm_f32_with_peephole(&p->gates[OUTPUT], out[i], cell[i], i)) *
			 tinyml_tanhf(cell[i]);
	}
	for (int32_t i = 0; i < p->outputs; i++) {
		if (p->projection == NULL) {
			state[i] = out[i];
		} else {
			const float sum =
				lstm_f32_dot(out, &p->projection[i * p->cells], p->cells) +
				(p->projection_bias != NULL ? p->projection_bias[i] : 0.0f);

			state[i] = lstm_f32_clip(sum, p->projection_clip);
		}
	}
}

void tinyml_lstm_f32(const struct tinyml_lstm_f32 *p, const float *x, float *y, float *state,
		     float *cell, float *gates)
{
	for (int32_t b = 0; b < p->batches; b++) {
		for (int32_t t = 0; t < p->steps; t++) {
			const int32_t row = b * p->batch_stride + t * p->step_stride;

			lstm_f32_step(p, &x[row * p->inputs], state, cell, gates);
			for (int32_t i = 0; i < p->outputs && y != NULL; i++) {
				y[row * p->outputs + i] = state[i];
			}
		}
		state += p->outputs;
		cell += p->cells;
	}
}
