/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Steps of RNN, GRU and LSTM on int8. The file that includes this one has, before it:
 *
 *   recurrent_cells_element      the type of elements in the copies of an input and a state
 *   recurrent_cells_padded(n)    how many elements such a copy of n has
 *   recurrent_cells_place(i)     where element i is in it
 *   recurrent_cells_group_bytes  bytes of weights of a group for each element of the copy
 *   recurrent_cells_four()       the sums of four rows
 *   recurrent_cells_saturate()   an int32_t as int16
 */

#ifndef TINYML_RECURRENT_CELLS_S8_H_
#define TINYML_RECURRENT_CELLS_S8_H_

#include <stddef.h>
#include <string.h>

#include <tinyml/fixed_point.h>
#include <tinyml/recurrent_s8.h>

#define ROWS 4

/* A run: its layer, and where its copies are. */
struct run {
	const struct tinyml_recurrent_s8 *p;
	int32_t inputs;                  /* elements of a copy of the input */
	int32_t hidden;                  /* elements of a copy of the state */
	recurrent_cells_element *x;      /* the input of this step */
	recurrent_cells_element *h;      /* the state before it */
	recurrent_cells_element *next;   /* the state after it */
	recurrent_cells_element *masked; /* GRU: the state after the reset gate */
	int16_t *update;                 /* GRU: its update gate */
	int16_t *c;                      /* cells, or GRU's states */
};

/* The groups in order: weights and what belongs to their rows. */
struct group {
	const int8_t *w;
	const int8_t *r;
	const int32_t *rows;
	int32_t from_x[ROWS];
	int32_t from_h[ROWS];
};

static inline int32_t recurrent_cells_high(int32_t a, int32_t b)
{
	return (int32_t)(((int64_t)a * b) >> 32);
}

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
static inline int32_t recurrent_cells_output(const struct tinyml_recurrent_s8 *p, int32_t h)
{
	const int32_t scaled = (h * p->out_factor + (1 << (p->out_shift - 1))) >> p->out_shift;

	return tinyml_clamp(scaled + p->out_zero, INT8_MIN, INT8_MAX);
}

static inline void recurrent_cells_multiply_x(const struct run *run, struct group *group)
{
	recurrent_cells_four(group->w, run->x, run->inputs, group->from_x);
	group->w += run->inputs * recurrent_cells_group_bytes;
}

static inline void recurrent_cells_multiply_h(const struct run *run, struct group *group,
					      const recurrent_cells_element *h)
{
	recurrent_cells_four(group->r, h, run->hidden, group->from_h);
	group->r += run->hidden * recurrent_cells_group_bytes;
}

/* What the input, or the state, adds to a gate, in units of 2^-15. */
static inline int32_t recurrent_cells_part_x(const struct run *run, const struct group *group,
					     int32_t i)
{
	return recurrent_cells_high((int32_t)((uint32_t)group->from_x[i] << run->p->x_left),
				    group->rows[ROWS + i]) +
	       group->rows[i];
}

static inline int32_t recurrent_cells_part_h(const struct run *run, const struct group *group,
					     int32_t i)
{
	return recurrent_cells_high((int32_t)((uint32_t)group->from_h[i] << run->p->h_left),
				    group->rows[2 * ROWS + i]);
}

static inline int32_t recurrent_cells_gate(const struct run *run, const struct group *group,
					   int32_t i)
{
	return recurrent_cells_saturate(
		(recurrent_cells_part_x(run, group, i) + recurrent_cells_part_h(run, group, i)) >>
		3);
}

static inline void recurrent_cells_skip(const struct run *run, struct group *group, int32_t groups)
{
	group->w += groups * run->inputs * recurrent_cells_group_bytes;
	group->r += groups * run->hidden * recurrent_cells_group_bytes;
	group->rows += groups * 3 * ROWS;
}

static inline int32_t recurrent_cells_left(const struct run *run, int32_t first)
{
	return run->p->hidden - first < ROWS ? run->p->hidden - first : ROWS;
}

static void recurrent_cells_step_rnn(const struct run *run)
{
	struct group group = {.w = run->p->w, .r = run->p->r, .rows = run->p->rows};

	for (int32_t j = 0; j < run->p->hidden; j += ROWS, group.rows += 3 * ROWS) {
		recurrent_cells_multiply_x(run, &group);
		recurrent_cells_multiply_h(run, &group, run->h);
		for (int32_t i = 0; i < recurrent_cells_left(run, j); i++) {
			const int32_t h =
				recurrent_cells_tanh(recurrent_cells_gate(run, &group, i));

			run->next[recurrent_cells_place(j + i)] =
				(recurrent_cells_element)recurrent_cells_output(run->p, h);
		}
	}
}

static void recurrent_cells_step_lstm(const struct run *run)
{
	const int32_t bits = run->p->cell_bits;
	struct group group = {.w = run->p->w, .r = run->p->r, .rows = run->p->rows};

	for (int32_t j = 0; j < run->p->hidden; j += ROWS) {
		int32_t gates[4][ROWS];
		const int32_t cells = recurrent_cells_left(run, j);

		for (int32_t g = 0; g < 4; g++, group.rows += 3 * ROWS) {
			recurrent_cells_multiply_x(run, &group);
			recurrent_cells_multiply_h(run, &group, run->h);
			for (int32_t i = 0; i < ROWS; i++) {
				gates[g][i] = recurrent_cells_gate(run, &group, i);
			}
		}
		for (int32_t i = 0; i < cells; i++) {
			const int32_t in = recurrent_cells_logistic(gates[0][i]);
			const int32_t out = recurrent_cells_logistic(gates[1][i]);
			const int32_t forget = recurrent_cells_logistic(gates[2][i]);
			const int32_t fresh = recurrent_cells_tanh(gates[3][i]);
			int32_t c = forget * run->c[j + i] + ((in * fresh) >> bits) + (1 << 14);

			c = recurrent_cells_saturate(c >> 15);
			run->c[j + i] = (int16_t)c;
			c = bits >= 3
				    ? recurrent_cells_saturate((int32_t)((uint32_t)c << (bits - 3)))
				    : c >> (3 - bits);
			c = (out * recurrent_cells_tanh(c) + (1 << 14)) >> 15;
			run->next[recurrent_cells_place(j + i)] =
				(recurrent_cells_element)recurrent_cells_output(run->p, c);
		}
	}
}

static inline void recurrent_cells_renew(const struct run *run, int32_t j, int32_t update,
					 int32_t fresh)
{
	const int32_t old = run->c[j];
	const int32_t h = (((1 << 15) - update) * fresh + update * old + (1 << 14)) >> 15;

	run->c[j] = (int16_t)h;
	run->next[recurrent_cells_place(j)] =
		(recurrent_cells_element)recurrent_cells_output(run->p, h);
}

/* The reset gate is applied to the product of matrix and state. */
static void recurrent_cells_step_gru_linear(const struct run *run)
{
	struct group group = {.w = run->p->w, .r = run->p->r, .rows = run->p->rows};

	for (int32_t j = 0; j < run->p->hidden; j += ROWS, group.rows += 3 * ROWS) {
		int32_t gates[2][ROWS];
		const int32_t cells = recurrent_cells_left(run, j);

		for (int32_t g = 0; g < 2; g++, group.rows += 3 * ROWS) {
			recurrent_cells_multiply_x(run, &group);
			recurrent_cells_multiply_h(run, &group, run->h);
			for (int32_t i = 0; i < ROWS; i++) {
				gates[g][i] = recurrent_cells_gate(run, &group, i);
			}
		}
		recurrent_cells_multiply_x(run, &group);
		recurrent_cells_multiply_h(run, &group, run->h);
		for (int32_t i = 0; i < cells; i++) {
			const int32_t back = recurrent_cells_saturate(
				(recurrent_cells_part_h(run, &group, i) + run->p->again[j + i]) >>
				3);
			const int32_t reset =
				recurrent_cells_logistic(gates[1][i]) * back + (1 << 14);
			const int32_t sum =
				(recurrent_cells_part_x(run, &group, i) >> 3) + (reset >> 15);

			recurrent_cells_renew(run, j + i, recurrent_cells_logistic(gates[0][i]),
					      recurrent_cells_tanh(recurrent_cells_saturate(sum)));
		}
	}
}

/* The reset gate is applied to the state, so all of them come first. */
static void recurrent_cells_step_gru(const struct run *run)
{
	struct group group = {.w = run->p->w, .r = run->p->r, .rows = run->p->rows};

	for (int32_t j = 0; j < run->p->hidden; j += ROWS) {
		const int32_t cells = recurrent_cells_left(run, j);

		for (int32_t g = 0; g < 2; g++, group.rows += 3 * ROWS) {
			recurrent_cells_multiply_x(run, &group);
			recurrent_cells_multiply_h(run, &group, run->h);
			for (int32_t i = 0; i < cells; i++) {
				const int32_t gate = recurrent_cells_logistic(
					recurrent_cells_gate(run, &group, i));

				if (g == 0) {
					run->update[j + i] = (int16_t)gate;
				} else {
					run->masked[recurrent_cells_place(j + i)] =
						(recurrent_cells_element)recurrent_cells_output(
							run->p,
							(gate * run->c[j + i] + (1 << 14)) >> 15);
				}
			}
		}
		recurrent_cells_skip(run, &group, 1);
	}
	group = (struct group){.w = run->p->w, .r = run->p->r, .rows = run->p->rows};
	for (int32_t j = 0; j < run->p->hidden; j += ROWS, group.rows += 3 * ROWS) {
		recurrent_cells_skip(run, &group, 2);
		recurrent_cells_multiply_x(run, &group);
		recurrent_cells_multiply_h(run, &group, run->masked);
		for (int32_t i = 0; i < recurrent_cells_left(run, j); i++) {
			recurrent_cells_renew(
				run, j + i, run->update[j + i],
				recurrent_cells_tanh(recurrent_cells_gate(run, &group, i)));
		}
	}
}

/* Copies for the kernel: elements that follow the last are 0. */
static void recurrent_cells_load(recurrent_cells_element *to, const int8_t *from, int32_t count)
{
	for (int32_t i = 0; i < count; i++) {
		to[recurrent_cells_place(i)] = from[i];
	}
}

static inline __attribute__((always_inline)) void
recurrent_cells_run(const struct tinyml_recurrent_s8 *p, const struct tinyml_recurrent_tensors *t,
		    bool gru, void (*step)(const struct run *run))
{
	const int32_t inputs = recurrent_cells_padded(p->inputs),
		      hidden = recurrent_cells_padded(p->hidden);
	struct run run = {.p = p, .inputs = inputs, .hidden = hidden, .x = t->scratch};
	recurrent_cells_element *states;

	run.h = run.x + inputs;
	run.next = run.h + hidden;
	run.masked = run.next + hidden;
	run.update = (int16_t *)(void *)(run.masked + (gru ? hidden : 0));
	memset(run.x, 0, (size_t)(inputs + (gru ? 3 : 2) * hidden) * sizeof(*run.x));
	for (int32_t n = 0; n < p->batches; n++) {
		const int8_t *h0 = t->h0;
		const int16_t *wide0 = gru ? t->h0 : t->c0;

		run.c = t->c != NULL ? &t->c[n * p->hidden] : gru ? run.update + p->hidden : NULL;
		for (int32_t i = 0; i < p->hidden; i++) {
			const int32_t at = n * p->hidden + i;
			int32_t first = h0 != NULL ? h0[at] : p->out_zero;

			if (gru || t->c != NULL) {
				run.c[i] = wide0 != NULL ? wide0[at] : 0;
			}
			if (gru) {
				first = recurrent_cells_output(p, run.c[i]);
			}
			run.h[recurrent_cells_place(i)] = (recurrent_cells_element)first;
		}
		for (int32_t s = 0; s < p->steps; s++) {
			const int32_t row = (p->reverse ? p->steps - 1 - s : s) * p->batches + n;

			recurrent_cells_load(run.x, &t->x[row * p->inputs], p->inputs);
			step(&run);
			states = run.h;
			run.h = run.next;
			run.next = states;
			for (int32_t i = 0; i < p->hidden && t->y != NULL; i++) {
				t->y[row * p->hidden + i] = (int8_t)run.h[recurrent_cells_place(i)];
			}
		}
		for (int32_t i = 0; i < p->hidden && t->h != NULL; i++) {
			t->h[n * p->hidden + i] = (int8_t)run.h[recurrent_cells_place(i)];
		}
	}
}

#undef ROWS

#endif /* TINYML_RECURRENT_CELLS_S8_H_ */
