/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Steps of RNN, GRU and LSTM on int8. The file that includes this one has, before it, the type of
 * elements in the copies of an input and a state, recurrent_cells_element, and functions:
 * recurrent_cells_padded() says how many elements a copy has; recurrent_cells_multiply() computes a
 * group and goes on to the next one; recurrent_cells_saturate16() and recurrent_cells_saturate8()
 * make an int16 or an int8 of an int32_t.
 */

#ifndef TINYML_RECURRENT_CELLS_S8_H_
#define TINYML_RECURRENT_CELLS_S8_H_

#include <stddef.h>

#include "recurrent_run_s8.h"

/* The table between two of its elements: place is in units of 2^-bits. */
static inline int32_t recurrent_cells_curve(int32_t place, int32_t bits)
{
	const int16_t *at = &tinyml_tanh_s16[place >> bits];
	const int32_t share = place & ((1 << bits) - 1);

	return at[0] + (((at[1] - at[0]) * share + (1 << (bits - 1))) >> bits);
}

static inline int32_t recurrent_cells_tanh(int32_t x)
{
	return recurrent_cells_curve(x + (1 << 15), 7);
}

static inline int32_t recurrent_cells_logistic(int32_t x)
{
	return (recurrent_cells_curve(x + (1 << 16), 8) + (1 << 15)) >> 1;
}

/* A state in units of 2^-15 as int8. */
static inline int32_t recurrent_cells_output(const struct output *to, int32_t h)
{
	return recurrent_cells_saturate8((h * to->factor + to->bias) >> to->shift);
}

static inline int32_t recurrent_cells_left(const struct run *run, int32_t first)
{
	return run->p->hidden - first < ROWS ? run->p->hidden - first : ROWS;
}

static void recurrent_cells_step_rnn(const struct run *run)
{
	const struct output to = run->to;
	struct group group = recurrent_run_first(run, run->h);

	for (int32_t j = 0; j < run->p->hidden; j += ROWS) {
		recurrent_cells_element *const next = &run->next[j];
		const int32_t cells = recurrent_cells_left(run, j);

		recurrent_cells_multiply(&group);
		for (int32_t i = 0; i < cells; i++) {
			const int32_t h = recurrent_cells_tanh(group.gates[i]);

			next[i] = (recurrent_cells_element)recurrent_cells_output(&to, h);
		}
	}
}

static void recurrent_cells_step_lstm(const struct run *run)
{
	const struct output to = run->to;
	const int32_t bits = run->p->cell_bits;
	const int32_t up = bits >= 3 ? bits - 3 : 0, down = bits >= 3 ? 0 : 3 - bits;
	struct group group = recurrent_run_first(run, run->h);

	for (int32_t j = 0; j < run->p->hidden; j += ROWS) {
		recurrent_cells_element *const next = &run->next[j];
		int16_t *const cell = &run->c[j];
		const int32_t cells = recurrent_cells_left(run, j);
		int16_t gates[3][ROWS];

		for (int32_t g = 0; g < 3; g++) {
			recurrent_cells_multiply(&group);
			for (int32_t i = 0; i < ROWS; i++) {
				gates[g][i] = (int16_t)group.gates[i];
			}
		}
		recurrent_cells_multiply(&group);
		for (int32_t i = 0; i < cells; i++) {
			const int32_t in = recurrent_cells_logistic(gates[0][i]);
			const int32_t out = recurrent_cells_logistic(gates[1][i]);
			const int32_t forget = recurrent_cells_logistic(gates[2][i]);
			const int32_t fresh = recurrent_cells_tanh(group.gates[i]);
			int32_t c = forget * cell[i] + ((in * fresh) >> bits) + (1 << 14);

			c = recurrent_cells_saturate16(c >> 15);
			cell[i] = (int16_t)c;
			c = recurrent_cells_saturate16((int32_t)((uint32_t)c << up) >> down);
			c = (out * recurrent_cells_tanh(c) + (1 << 14)) >> 15;
			next[i] = (recurrent_cells_element)recurrent_cells_output(&to, c);
		}
	}
}

/* GRU's state after a step, in units of 2^-15. */
static inline int32_t recurrent_cells_renewed(int32_t update, int32_t fresh, int32_t old)
{
	return (((1 << 15) - update) * fresh + update * old + (1 << 14)) >> 15;
}

/* The reset gate is applied to the product of matrix and state. */
static void recurrent_cells_step_gru_linear(const struct run *run)
{
	const struct output to = run->to;
	struct group group = recurrent_run_first(run, run->h);

	for (int32_t j = 0; j < run->p->hidden; j += ROWS) {
		recurrent_cells_element *const next = &run->next[j];
		int16_t *const wide = &run->c[j];
		const int32_t *const again = &run->p->again[j];
		const int32_t cells = recurrent_cells_left(run, j);
		int16_t gates[2][ROWS];

		for (int32_t g = 0; g < 2; g++) {
			recurrent_cells_multiply(&group);
			for (int32_t i = 0; i < ROWS; i++) {
				gates[g][i] = (int16_t)group.gates[i];
			}
		}
		recurrent_cells_multiply(&group);
		for (int32_t i = 0; i < cells; i++) {
			const int32_t back =
				recurrent_cells_saturate16((group.from_h[i] + again[i]) >> 3);
			const int32_t reset =
				recurrent_cells_logistic(gates[1][i]) * back + (1 << 14);
			const int32_t sum = (group.from_x[i] >> 3) + (reset >> 15);
			const int32_t fresh = recurrent_cells_tanh(recurrent_cells_saturate16(sum));
			const int32_t update = recurrent_cells_logistic(gates[0][i]);
			const int32_t h = recurrent_cells_renewed(update, fresh, wide[i]);

			wide[i] = (int16_t)h;
			next[i] = (recurrent_cells_element)recurrent_cells_output(&to, h);
		}
	}
}

/* The reset gate is applied to the state, so all of them come first. */
static void recurrent_cells_step_gru(const struct run *run)
{
	const struct output to = run->to;
	struct group group = recurrent_run_first(run, run->h);

	for (int32_t j = 0; j < run->p->hidden; j += ROWS) {
		recurrent_cells_element *const masked = &run->masked[j];
		int16_t *const wide = &run->c[j], *const update = &run->update[j];
		const int32_t cells = recurrent_cells_left(run, j);

		recurrent_cells_multiply(&group);
		for (int32_t i = 0; i < cells; i++) {
			update[i] = (int16_t)recurrent_cells_logistic(group.gates[i]);
		}
		recurrent_cells_multiply(&group);
		for (int32_t i = 0; i < cells; i++) {
			const int32_t reset = recurrent_cells_logistic(group.gates[i]);
			const int32_t h = (reset * wide[i] + (1 << 14)) >> 15;

			masked[i] = (recurrent_cells_element)recurrent_cells_output(&to, h);
		}
		recurrent_run_skip(run, &group, 1);
	}
	group = recurrent_run_first(run, run->masked);
	for (int32_t j = 0; j < run->p->hidden; j += ROWS) {
		recurrent_cells_element *const next = &run->next[j];
		int16_t *const wide = &run->c[j], *const update = &run->update[j];
		const int32_t cells = recurrent_cells_left(run, j);

		recurrent_run_skip(run, &group, 2);
		recurrent_cells_multiply(&group);
		for (int32_t i = 0; i < cells; i++) {
			const int32_t fresh = recurrent_cells_tanh(group.gates[i]);
			const int32_t h = recurrent_cells_renewed(update[i], fresh, wide[i]);

			wide[i] = (int16_t)h;
			next[i] = (recurrent_cells_element)recurrent_cells_output(&to, h);
		}
	}
}

#endif /* TINYML_RECURRENT_CELLS_S8_H_ */
