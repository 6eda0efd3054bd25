/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Steps of RNN, GRU and LSTM on int8 in plain C, group by group. The file that includes this one
 * has functions before it: recurrent_cells_multiply() computes groups, one after the other;
 * recurrent_cells_gate() makes an int16 in units of 2^-12 of a sum in units of 2^-15;
 * recurrent_cells_tanh() and recurrent_cells_logistic() are functions of such a gate, with what
 * they need of recurrent_cells_curves(); recurrent_cells_saturate16() makes an int16, and
 * recurrent_cells_from_30() one in units of 2^-15 of a product in units of 2^-30. */

#ifndef TINYML_RECURRENT_CELLS_S8_H_
#define TINYML_RECURRENT_CELLS_S8_H_

#include "recurrent_group_s8.h"

/* A state in units of 2^-15 as int8. */
static inline int32_t recurrent_cells_output(const struct output *to, int32_t h)
{
	return recurrent_run_saturate8((h * to->factor + to->bias) >> to->shift);
}

static inline int32_t recurrent_cells_left(const struct run *run, int32_t first)
{
	return run->p->hidden - first < ROWS ? run->p->hidden - first : ROWS;
}

static void recurrent_cells_step_rnn(struct run *run)
{
	const struct output to = run->to;
	struct group group = recurrent_group_first(run, run->h);
	struct recurrent_cells_curves curves = recurrent_cells_curves();

	for (int32_t j = 0; j < run->p->hidden; j += ROWS) {
		recurrent_run_element *const next = &run->next[j];
		const int32_t cells = recurrent_cells_left(run, j);
		int32_t sums[ROWS];

		recurrent_cells_multiply(&group, sums, 1);
		for (int32_t i = 0; i < cells; i++) {
			const int32_t h =
				recurrent_cells_tanh(&curves, recurrent_cells_gate(sums[i]));

			next[i] = (recurrent_run_element)recurrent_cells_output(&to, h);
		}
	}
}

static void recurrent_cells_step_lstm(struct run *run)
{
	const struct output to = run->to;
	const int32_t bits = run->p->cell_bits;
	struct group group = recurrent_group_first(run, run->h);
	struct recurrent_cells_curves curves = recurrent_cells_curves();

	for (int32_t j = 0; j < run->p->hidden; j += ROWS) {
		recurrent_run_element *const next = &run->next[j];
		int16_t *const cell = &run->c[j];
		const int32_t cells = recurrent_cells_left(run, j);
		int32_t sums[4][ROWS];

		recurrent_cells_multiply(&group, sums[0], 4);
		for (int32_t i = 0; i < cells; i++) {
			const int32_t in =
				recurrent_cells_logistic(&curves, recurrent_cells_gate(sums[0][i]));
			const int32_t out =
				recurrent_cells_logistic(&curves, recurrent_cells_gate(sums[1][i]));
			const int32_t forget =
				recurrent_cells_logistic(&curves, recurrent_cells_gate(sums[2][i]));
			const int32_t fresh =
				recurrent_cells_tanh(&curves, recurrent_cells_gate(sums[3][i]));
			int32_t c = forget * cell[i] + ((in * fresh) >> bits) + (1 << 14);

			c = recurrent_cells_from_30(c);
			cell[i] = (int16_t)c;
			c = recurrent_cells_gate((int32_t)((uint32_t)c << bits));
			c = (out * recurrent_cells_tanh(&curves, c) + (1 << 14)) >> 15;
			next[i] = (recurrent_run_element)recurrent_cells_output(&to, c);
		}
	}
}

/* GRU's state after a step, in units of 2^-15. */
static inline int32_t recurrent_cells_renewed(int32_t update, int32_t fresh, int32_t old)
{
	return (((1 << 15) - update) * fresh + update * old + (1 << 14)) >> 15;
}

/* The reset gate is applied to the product of matrix and state. */
static void recurrent_cells_step_gru_linear(struct run *run)
{
	const struct output to = run->to;
	struct group group = recurrent_group_first(run, run->h);
	struct recurrent_cells_curves curves = recurrent_cells_curves();

	for (int32_t j = 0; j < run->p->hidden; j += ROWS) {
		recurrent_run_element *const next = &run->next[j];
		int16_t *const wide = &run->c[j];
		const int32_t *const again = &run->p->again[j];
		const int32_t cells = recurrent_cells_left(run, j);
		int32_t sums[3][ROWS];

		recurrent_cells_multiply(&group, sums[0], 3);
		for (int32_t i = 0; i < cells; i++) {
			const int32_t from_x = group.from_x[i], from_h = sums[2][i] - from_x;
			const int32_t update =
				recurrent_cells_logistic(&curves, recurrent_cells_gate(sums[0][i]));
			const int32_t reset =
				recurrent_cells_logistic(&curves, recurrent_cells_gate(sums[1][i]));
			const int32_t back =
				reset * recurrent_cells_gate(from_h + again[i]) + (1 << 14);
			const int32_t sum = (from_x >> 3) + (back >> 15);
			const int32_t fresh =
				recurrent_cells_tanh(&curves, recurrent_cells_saturate16(sum));
			const int32_t h = recurrent_cells_renewed(update, fresh, wide[i]);

			wide[i] = (int16_t)h;
			next[i] = (recurrent_run_element)recurrent_cells_output(&to, h);
		}
	}
}

/* The reset gate is applied to the state, so all of them come first. */
static void recurrent_cells_step_gru(struct run *run)
{
	const struct output to = run->to;
	struct group group = recurrent_group_first(run, run->h);
	struct recurrent_cells_curves curves = recurrent_cells_curves();

	for (int32_t j = 0; j < run->p->hidden; j += ROWS) {
		recurrent_run_element *const masked = &run->masked[j];
		int16_t *const wide = &run->c[j], *const update = &run->update[j];
		const int32_t cells = recurrent_cells_left(run, j);

		int32_t sums[2][ROWS];

		recurrent_cells_multiply(&group, sums[0], 2);
		for (int32_t i = 0; i < cells; i++) {
			const int32_t reset =
				recurrent_cells_logistic(&curves, recurrent_cells_gate(sums[1][i]));
			const int32_t h = (reset * wide[i] + (1 << 14)) >> 15;

			update[i] = (int16_t)recurrent_cells_logistic(
				&curves, recurrent_cells_gate(sums[0][i]));
			masked[i] = (recurrent_run_element)recurrent_cells_output(&to, h);
		}
		recurrent_group_skip(run, &group, 1);
	}
	group = recurrent_group_first(run, run->masked);
	for (int32_t j = 0; j < run->p->hidden; j += ROWS) {
		recurrent_run_element *const next = &run->next[j];
		int16_t *const wide = &run->c[j], *const update = &run->update[j];
		const int32_t cells = recurrent_cells_left(run, j);
		int32_t sums[ROWS];

		recurrent_group_skip(run, &group, 2);
		recurrent_cells_multiply(&group, sums, 1);
		for (int32_t i = 0; i < cells; i++) {
			const int32_t fresh =
				recurrent_cells_tanh(&curves, recurrent_cells_gate(sums[i]));
			const int32_t h = recurrent_cells_renewed(update[i], fresh, wide[i]);

			wide[i] = (int16_t)h;
			next[i] = (recurrent_run_element)recurrent_cells_output(&to, h);
		}
	}
}

#endif /* TINYML_RECURRENT_CELLS_S8_H_ */
