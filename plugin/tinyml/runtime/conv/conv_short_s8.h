/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * For conv_short_dsp_s8.c and conv_short_mve_s8.c: all filters at windows of one row or column of
 * outputs. The file that includes this has, before that,
 *
 *   conv_short_walk: the type of what its loops read and keep
 *   struct conv_short: a layer while it is computed; has `p` and `walk`
 *   conv_short_choose(): `size` filters are next; returns what follows them
 */

#ifndef TINYML_CONV_SHORT_S8_H_
#define TINYML_CONV_SHORT_S8_H_

#include <stdint.h>

#include <tinyml/conv.h>
#include <tinyml/fixed_point.h>

/* Apply filters to so many windows, `together` at a time; the last block may overlap others. */
static void conv_short_blocks(conv_short_walk *walk, tinyml_conv_short_loop *loop, int32_t count,
			      int32_t together)
{
	const int32_t blocks = count / together, step = walk->step, out_step = walk->out_step;
	int32_t rest = count - blocks * together;

	if (blocks > 0) {
		walk->blocks = blocks;
		loop(walk);
		if (rest > 0) {
			walk->x -= (together - rest) * step;
			walk->y -= (together - rest) * out_step;
			walk->blocks = 1;
			loop(walk);
		}
		return;
	}
	walk->step = 0; /* all windows of a block are the same */
	walk->out_step = 0;
	for (; rest > 0; rest--, walk->x += step, walk->y += out_step) {
		walk->blocks = 1;
		loop(walk);
	}
	walk->step = step;
	walk->out_step = out_step;
}

/* Outputs are within the type, but have narrower limits. */
static void conv_short_limit(const struct tinyml_conv_short_s8 *p, int8_t *y, int32_t step,
			     int32_t count)
{
	for (; count > 0; count--, y += step) {
		for (int32_t i = 0; i < p->window.out_c; i++) {
			y[i] = (int8_t)tinyml_clamp(y[i], p->out_min, p->out_max);
		}
	}
}

/* All filters at so many windows. */
static void conv_short_run(struct conv_short *c, const int8_t *x, int8_t *y, int32_t count)
{
	const struct tinyml_conv_short_s8 *p = c->p;
	conv_short_walk *walk = &c->walk;
	const int32_t *filters = p->filters;
	int32_t left = p->window.out_c;

	for (int8_t *to = y; left > 0;) {
		const int32_t size = left > 3 ? 4 : left > 1 ? 2 : 1;

		walk->x = x;
		walk->y = to;
		walk->filters = filters;
		filters = conv_short_choose(c, filters, size);
		if (size == 4) {
			walk->blocks = count;
			p->fours(walk);
		} else {
			conv_short_blocks(walk, size == 2 ? p->twos : p->ones, count, 4 / size);
		}
		to += size;
		left -= size;
	}
	if (p->out_min > INT8_MIN || p->out_max < INT8_MAX) {
		conv_short_limit(p, y, walk->out_step, count);
	}
}

#endif /* TINYML_CONV_SHORT_S8_H_ */
