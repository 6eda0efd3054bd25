/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* All steps of all batches of a recurrent layer on int8. The file that includes this one has,
 * before it, the type of elements in the copies of an input and a state, recurrent_run_element,
 * what else is the same in every step, struct own, and functions: recurrent_run_padded() says how
 * many elements a copy has, and recurrent_run_updates() how many GRU's update gate has;
 * recurrent_run_place() says where an element is in a copy; recurrent_run_take() copies an input,
 * and recurrent_run_give() a state to the output;
 * recurrent_run_saturate8() makes an int8; recurrent_run_prepare() fills struct own.
 */

#ifndef TINYML_RECURRENT_RUN_S8_H_
#define TINYML_RECURRENT_RUN_S8_H_

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <tinyml/recurrent_s8.h>

#define ROWS 4 /* the same gate of so many cells is computed at a time */

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
	int32_t inputs;                /* elements of a copy of the input */
	int32_t hidden;                /* elements of a copy of the state */
	recurrent_run_element *x;      /* the input of this step */
	recurrent_run_element *h;      /* the state before it */
	recurrent_run_element *next;   /* the state after it */
	recurrent_run_element *masked; /* GRU: the state after the reset gate */
	int16_t *update;               /* GRU: its update gate */
	int16_t *c;                    /* cells, or GRU's states */
	struct own own;                /* what else is the same in every step */
};

/* A state in units of 2^-15 as int8. */
static inline recurrent_run_element recurrent_run_output(const struct run *run, int32_t state)
{
	state = (state * run->to.factor + run->to.bias) >> run->to.shift;
	return (recurrent_run_element)recurrent_run_saturate8(state);
}

/* The states before the first step of batch n. */
static inline void recurrent_run_begin(const struct run *run,
				       const struct tinyml_recurrent_tensors *t, int32_t n,
				       bool gru)
{
	const int32_t hidden = run->p->hidden;
	const int8_t *h0 = gru ? NULL : t->h0;
	const int16_t *wide0 = gru ? t->h0 : t->c0;
	recurrent_run_element zero = run->p->out_zero;

	if (run->c != NULL) {
		memset(run->c, 0, (size_t)hidden * sizeof(*run->c));
		zero = gru ? recurrent_run_output(run, 0) : zero;
	}
	for (recurrent_run_element *h = run->h; h != run->h + run->hidden; h++) {
		*h = zero; /* also the elements without a cell, whose weights are 0 */
	}
	for (int32_t i = 0; h0 != NULL && i < hidden; i++) {
		run->h[recurrent_run_place(i)] = h0[n * hidden + i];
		__asm__ volatile("" ::: "memory"); /* no memcpy(), which may be nowhere else */
	}
	for (int32_t i = 0; run->c != NULL && wide0 != NULL && i < hidden; i++) {
		run->c[i] = wide0[n * hidden + i];
		__asm__ volatile("" ::: "memory");
		if (gru) {
			run->h[recurrent_run_place(i)] = recurrent_run_output(run, run->c[i]);
		}
	}
}

static inline __attribute__((always_inline)) void
recurrent_run_all(const struct tinyml_recurrent_s8 *p, const struct tinyml_recurrent_tensors *t,
		  bool gru, void (*step)(struct run *run))
{
	const int32_t inputs = recurrent_run_padded(p->inputs);
	const int32_t hidden = recurrent_run_padded(p->hidden);
	const int32_t first = p->reverse ? (p->steps - 1) * p->batches : 0; /* row of the input */
	const int32_t ahead = p->reverse ? -p->batches : p->batches;
	struct run run; /* its members are set one by one: zeros first would be a fifth of a short
			   call */

	run.p = p;
	run.inputs = inputs;
	run.hidden = hidden;
	run.x = t->scratch;
	run.to.factor = p->out_factor;
	run.to.shift = p->out_shift;
	run.to.bias = p->out_zero * (1 << p->out_shift) + (1 << (p->out_shift - 1));
	run.h = run.x + inputs;
	run.next = run.h + hidden;
	run.masked = run.next + hidden;
	run.update = (int16_t *)(void *)(run.masked + (gru ? hidden : 0));
	recurrent_run_prepare(&run.own, p, run.x);
	memset(run.x, 0, (size_t)(inputs + (gru ? 3 : 2) * hidden) * sizeof(*run.x));
	for (int32_t n = 0; n < p->batches; n++) {
		run.c = t->c != NULL ? &t->c[n * p->hidden]
			: gru        ? run.update + recurrent_run_updates(p->hidden)
				     : NULL;
		recurrent_run_begin(&run, t, n, gru);
		for (int32_t s = p->steps, row = first + n; s != 0; s--, row += ahead) {
			recurrent_run_element *states = run.h;

			recurrent_run_take(run.x, &t->x[row * p->inputs], p);
			step(&run);
			run.h = run.next;
			run.next = states;
			if (t->y != NULL) {
				recurrent_run_give(&t->y[row * p->hidden], run.h, p->hidden);
			}
		}
		if (t->h != NULL) {
			recurrent_run_give(&t->h[n * p->hidden], run.h, p->hidden);
		}
	}
}

#endif /* TINYML_RECURRENT_RUN_S8_H_ */
