/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tinyml/fixed_point.h>
#include <tinyml/lstm.h>
#include <tinyml/transcendental.h>

enum { INPUT, FORGET, CELL, OUTPUT };

static int32_t lstm_s8_dot(const int8_t *a, const int8_t *b, int32_t length, int32_t acc)
{
	for (int32_t i = 0; i < length; i++) {
		acc += a[i] * b[i];
	}
	return acc;
}

static int32_t lstm_s8_rescale(int32_t x, struct tinyml_scale scale)
{
	return tinyml_rescale(x, scale.multiplier, scale.shift);
}

/* One gate of one step, before its activation. */
static void lstm_s8_accumulate_gate(const struct tinyml_lstm_s8 *p,
				    const struct tinyml_lstm_gate_s8 *gate, const int8_t *x,
				    const int8_t *state, int16_t *to)
{
	for (int32_t i = 0; i < p->cells; i++) {
		const int32_t in =
			lstm_s8_dot(x, &gate->weights[i * p->inputs], p->inputs, gate->bias[i]);
		const int32_t back = lstm_s8_dot(state, &gate->recurrent[i * p->cells], p->cells,
						 gate->recurrent_bias[i]);
		const int32_t first =
			tinyml_clamp(lstm_s8_rescale(in, gate->scale), INT16_MIN, INT16_MAX);

		to[i] = (int16_t)tinyml_clamp(first + lstm_s8_rescale(back, gate->recurrent_scale),
					      INT16_MIN, INT16_MAX);
	}
}

/* tanh(a) or 1 / (1 + exp(-a)), a with integer_bits before the point; the result is in Q0.15. */
static int32_t lstm_s8_activation(int32_t a, int32_t integer_bits, bool is_tanh)
{
	/* exp(-2 |a|) is exp(-|a|) with the point one bit further to the right */
	const int32_t e = tinyml_exp_s16(a > 0 ? -a : a, is_tanh ? integer_bits + 1 : integer_bits);
	const int32_t quotient = tinyml_twice_one_over_one_plus_s16(e);

	if (is_tanh) {
		const int32_t size = tinyml_saturating_shift_left_s16(quotient - (1 << 13), 2);

		return a == 0 ? 0 : a > 0 ? size : -size;
	}

	const int32_t positive = tinyml_saturating_shift_left_s16(quotient, 1);

	return a == 0 ? 1 << 14 : a > 0 ? positive : INT16_MAX - positive;
}

static void lstm_s8_step(const struct tinyml_lstm_s8 *p, const int8_t *x, int8_t *state,
			 int16_t *cell, int16_t *gates)
{
	/* 2^-15 * 2^-15 to the cell's scale, which is 2^(integer bits - 15) */
	const int32_t new_shift = 15 + p->cell_integer_bits;

	for (int32_t g = 0; g < 4; g++) {
		int16_t *const gate = &gates[g * p->cells];

		lstm_s8_accumulate_gate(p, &p->gates[g], x, state, gate);
		for (int32_t i = 0; i < p->cells; i++) {
			gate[i] = (int16_t)lstm_s8_activation(gate[i], 3, g == CELL);
		}
	}
	for (int32_t i = 0; i < p->cells; i++) {
		const int32_t in = gates[INPUT * p->cells + i];
		const int32_t forget = gates[FORGET * p->cells + i];
		const int32_t new = gates[CELL * p->cells + i];
		const int32_t out = gates[OUTPUT * p->cells + i];
		int32_t c = tinyml_rounding_shift_right(forget * cell[i], 15);

		c += tinyml_rounding_shift_right(in * new, new_shift);
		c = tinyml_clamp(tinyml_clamp(c, INT16_MIN, INT16_MAX),
				 p->cell_limit == INT16_MAX ? INT16_MIN : -p->cell_limit,
				 p->cell_limit);
		cell[i] = (int16_t)c;
		c = lstm_s8_rescale(lstm_s8_activation(c, p->cell_integer_bits, true) * out,
				    p->hidden_scale);
		state[i] = (int8_t)tinyml_clamp(c + p->state_zero, INT8_MIN, INT8_MAX);
	}
}

void tinyml_lstm_s8(const struct tinyml_lstm_s8 *p, const int8_t *x, int8_t *y, int8_t *state,
		    int16_t *cell, int16_t *gates)
{
	for (int32_t b = 0; b < p->batches; b++) {
		for (int32_t t = 0; t < p->steps; t++) {
			const int32_t row = b * p->batch_stride + t * p->step_stride;

			lstm_s8_step(p, &x[row * p->inputs], state, cell, gates);
			for (int32_t i = 0; i < p->cells && y != NULL; i++) {
				y[row * p->cells + i] = state[i];
			}
		}
		state += p->cells;
		cell += p->cells;
	}
}
