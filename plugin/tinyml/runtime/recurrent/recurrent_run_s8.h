/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* All steps of all batches of a recurrent layer on int8; see recurrent_cells_s8.h. */

#ifndef TINYML_RECURRENT_RUN_S8_H_
#define TINYML_RECURRENT_RUN_S8_H_

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <tinyml/recurrent_s8.h>

#include "recurrent_group_s8.h"

/* From units of 2^-15 to the output. */
struct output {
	int32_t factor;
	int32_t bias; /* the zero point, and a half */
	int32_t shift;
};

/* A run: its layer, and where its copies are. */
struct run {
	const struct tinyml_recurrent_s8 *p;
	struct output to;
	int32_t inputs;                  /* elements of a copy of the input */
	int32_t hidden;                  /* elements of a copy of the state */
	recurrent_cells_element *x;      /* the input of this step */
	recurrent_cells_element *h;      /* the state before it */
	recurrent_cells_element *next;   /* the state after it */
	recurrent_cells_element *masked; /* GRU: the state after the reset gate */
	int16_t *update;                 /* GRU: its update gate */
	int16_t *c;                      /* cells, or GRU's states */
};

/* Before the first group of a step. */
static inline struct group recurrent_run_first(const struct run *run,
					       const recurrent_cells_element *h)
{
	struct group group;

	group.w = run->p->w;
	group.x = run->x;
	group.x_end = run->x + run->inputs;
	group.x_entry = recurrent_cells_entry(run->inputs);
	group.r = run->p->r;
	group.h = h;
	group.h_end = h + run->hidden;
	group.h_entry = recurrent_cells_entry(run->hidden);
	group.rows = run->p->rows;
	group.x_left = run->p->x_left;
	group.h_left = run->p->h_left;
	return group;
}

static inline void recurrent_run_skip(const struct run *run, struct group *group, int32_t groups)
{
	group->w += groups * run->inputs * ROWS;
	group->r += groups * run->hidden * ROWS;
	group->rows += groups * 3 * ROWS;
}

/* The states before the first step of batch n. */
static inline void recurrent_run_begin(const struct run *run,
				       const struct tinyml_recurrent_tensors *t, int32_t n,
				       bool gru)
{
	const int32_t hidden = run->p->hidden;
	const int8_t *h0 = t->h0;
	const int16_t *wide0 = gru ? t->h0 : t->c0;

	for (int32_t i = 0; i < hidden; i++) {
		int32_t h = h0 != NULL && !gru ? h0[n * hidden + i] : run->p->out_zero;

		if (run->c != NULL) {
			run->c[i] = wide0 != NULL ? wide0[n * hidden + i] : 0;
		}
		if (gru) {
			h = (run->c[i] * run->to.factor + run->to.bias) >> run->to.shift;
			h = recurrent_cells_saturate8(h);
		}
		run->h[i] = (recurrent_cells_element)h;
	}
}

static inline __attribute__((always_inline)) void
recurrent_run_all(const struct tinyml_recurrent_s8 *p, const struct tinyml_recurrent_tensors *t,
		  bool gru, void (*step)(const struct run *run))
{
	const int32_t inputs = recurrent_cells_padded(p->inputs);
	const int32_t hidden = recurrent_cells_padded(p->hidden);
	struct run run = {.p = p, .inputs = inputs, .hidden = hidden, .x = t->scratch};

	run.to.factor = p->out_factor;
	run.to.shift = p->out_shift;
	run.to.bias = p->out_zero * (1 << p->out_shift) + (1 << (p->out_shift - 1));
	run.h = run.x + inputs;
	run.next = run.h + hidden;
	run.masked = run.next + hidden;
	run.update = (int16_t *)(void *)(run.masked + (gru ? hidden : 0));
	memset(run.x, 0, (size_t)(inputs + (gru ? 3 : 2) * hidden) * sizeof(*run.x));
	for (int32_t n = 0; n < p->batches; n++) {
		run.c = t->c != NULL ? &t->c[n * p->hidden] : gru ? run.update + p->hidden : NULL;
		recurrent_run_begin(&run, t, n, gru);
		for (int32_t s = 0; s < p->steps; s++) {
			const int32_t row = (p->reverse ? p->steps - 1 - s : s) * p->batches + n;
			const int8_t *x = &t->x[row * p->inputs];
			recurrent_cells_element *states = run.h;

			recurrent_cells_take(run.x, x, p->inputs);
			step(&run);
			run.h = run.next;
			run.next = states;
			for (int32_t i = 0; i < p->hidden && t->y != NULL; i++) {
				t->y[row * p->hidden + i] = (int8_t)run.h[i];
			}
		}
		for (int32_t i = 0; i < p->hidden && t->h != NULL; i++) {
			t->h[n * p->hidden + i] = (int8_t)run.h[i];
		}
	}
}

#endif /* TINYML_RECURRENT_RUN_S8_H_ */
