/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The rows that recurrent layers on int8 compute at a time: plain C, and Helium. The file that
 * includes this one has a type before it, recurrent_group_extent, that says how far a copy goes,
 * and recurrent_group_reach(), which makes it of the copy and its number of elements.
 */

#ifndef TINYML_RECURRENT_GROUP_S8_H_
#define TINYML_RECURRENT_GROUP_S8_H_

#include <stdint.h>

#include "recurrent_run_s8.h"

/* The same gate of four cells. Assembly knows the order of the members up to from_x. */
struct group {
	const int8_t *w;     /* the weights of the next group */
	const int8_t *r;     /* the recurrent weights of the next group */
	const int32_t *rows; /* of the next group: 4 biases, 4 factors of from_x, 4 of from_h */
	const int8_t *x;     /* a copy of the input */
	const int8_t *h;     /* a copy of the state */
	recurrent_group_extent x_extent;
	recurrent_group_extent h_extent;
	int32_t x_left; /* how far sums are shifted before they are scaled */
	int32_t h_left;
	int32_t from_x[ROWS]; /* what the input adds, with the bias, in units of 2^-15 */
};

/* Before the first group of a step. */
static inline struct group recurrent_group_first(const struct run *run,
						 const recurrent_run_element *h)
{
	struct group group;

	group.w = run->p->w;
	group.r = run->p->r;
	group.rows = run->p->rows;
	group.x = run->x;
	group.h = h;
	group.x_extent = recurrent_group_reach(run->x, run->inputs);
	group.h_extent = recurrent_group_reach(h, run->hidden);
	group.x_left = run->p->x_left;
	group.h_left = run->p->h_left;
	return group;
}

static inline void recurrent_group_skip(const struct run *run, struct group *group, int32_t groups)
{
	group->w += groups * run->inputs * ROWS;
	group->r += groups * run->hidden * ROWS;
	group->rows += groups * 3 * ROWS;
}

#endif /* TINYML_RECURRENT_GROUP_S8_H_ */
