/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions with int16 activations and DSP instructions: three windows, side by side in columns,
 * meet two filters at a time.
 */

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include "conv_columns_dsp_s16.h"
#include "conv_walk_dsp_s16.h"

/* The walks over the filters of a group in pairs, and over a last one alone, whose pair is zeros:
 * nothing is read behind the tables.
 */
struct conv_dsp_s16 {
	struct conv_walk_dsp_s16 pairs;
	struct conv_walk_dsp_s16 last;
	int32_t even; /* filters in pairs */
	bool odd;
	int32_t bias[2];
	int32_t factor[2];
	uint8_t shift[2];
};

/* What is the same for all positions of a group of `out_c` filters. */
__attribute__((noinline)) static void conv_dsp_s16_prepare(const struct tinyml_conv_dsp_s16 *p,
							   const struct conv_columns_dsp_s16 *g,
							   int32_t first_out, int32_t out_c,
							   struct conv_dsp_s16 *walks)
{
	const int32_t fours = g->padded / 4 - 1; /* the first ones are no part of a turn */
	const int32_t last = first_out + out_c - 1;
	struct conv_walk_dsp_s16 *walk = &walks->pairs;

	walk->columns = g->columns;
	walk->bias = &p->bias[first_out];
	walk->columns_end = g->columns + (1 + g->padded / 2) * WINDOWS;
	walk->skipped = fours == 0 ? TURN * FOUR_BYTES + CHECK_BYTES
				   : (TURN - 1 - (fours - 1) % TURN) * FOUR_BYTES;
	walk->factor = &p->factor[first_out];
	walk->shift = p->shift != NULL ? &p->shift[first_out] : NULL;
	walk->low = (uint16_t)p->out_min * UINT32_C(0x10001);
	walk->high = (uint16_t)p->out_max * UINT32_C(0x10001);
	walk->rare = (p->shift != NULL ? SHIFTS : 0) |
		     (p->out_min == 0 && p->out_max == INT16_MAX ? 0 : LIMITS);
	walks->even = out_c & ~1;
	walks->odd = out_c % 2 != 0;
	if (walks->odd) {
		walks->bias[0] = p->bias[last];
		walks->bias[1] = 0;
		walks->factor[0] = p->factor[last];
		walks->factor[1] = 0;
		walks->shift[0] = p->shift != NULL ? p->shift[last] : 0;
		walks->shift[1] = 1;
		walks->last = *walk;
		walks->last.bias = walks->bias;
		walks->last.factor = walks->factor;
		walks->last.shift = p->shift != NULL ? walks->shift : NULL;
		walks->last.rare |= SINGLE;
	}
}

/* The outputs of `filters` at the windows in the columns, whose outputs go to y. */
static inline const uint32_t *conv_dsp_s16_apply(struct conv_walk_dsp_s16 *walk,
						 const uint32_t *weights, int16_t *const *y,
						 int32_t first, int32_t filters)
{
	walk->y = y[0] + first;
	walk->second = 2 * (y[1] - y[0]);
	walk->third = 2 * (y[2] - y[0]);
	walk->end = y[0] + first + filters;
	return conv_walk_dsp_s16_filters(weights, walk);
}

/* So many positions. Returns what follows the weights of the group. */
static const uint32_t *conv_dsp_s16_positions(const struct tinyml_window *w,
					      const struct conv_columns_dsp_s16 *g,
					      struct conv_dsp_s16 *walks, const uint32_t *weights,
					      struct conv_places_s16 *at, int32_t positions)
{
	const uint32_t *next = weights;
	int16_t *y[WINDOWS];

	for (; positions > 0; positions -= WINDOWS) {
		const int32_t count = positions < WINDOWS ? positions : WINDOWS;

		if (g->flat) {
			conv_columns_dsp_s16_collect_flat(w, g, at, count, y);
		} else {
			conv_columns_dsp_s16_collect(w, g, at, count, y);
		}
		if (count == 1 && g->padded > 4) {
			walks->pairs.skipped = -ALONE_BYTES;
			walks->last.skipped = -ALONE_BYTES;
		}
		next = weights;
		if (walks->even > 0) {
			next = conv_dsp_s16_apply(&walks->pairs, next, y, 0, walks->even);
		}
		if (walks->odd) {
			next = conv_dsp_s16_apply(&walks->last, next, y, walks->even, 2);
		}
	}
	return next;
}

void tinyml_conv_dsp_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y,
			 void *scratch)
{
	const struct tinyml_steps_s16 steps = conv_places_s16_neighbours(&p->window);

	tinyml_conv_steps_dsp_s16(p, x, y, &steps, scratch);
}

void tinyml_conv_steps_dsp_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y,
			       const struct tinyml_steps_s16 *steps, void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t out_c = w->out_c / p->groups;
	struct conv_columns_dsp_s16 g = {.in_c = w->in_c / p->groups, .columns = scratch};
	struct conv_places_s16 at = conv_places_s16(w, x, y, steps);
	const uint32_t *weights = (const uint32_t *)p->weights;
	int32_t images = 1, positions = w->batches * w->out_h * w->out_w;
	struct conv_dsp_s16 walks;

	TINYML_ASSERT(w->in_c % p->groups == 0 && w->out_c % p->groups == 0);
	TINYML_ASSERT(TINYML_ALIGNED(scratch, 4) && TINYML_ALIGNED(p->weights, 4));
	g.taps = w->dilation_w == 1 && p->groups == 1 ? w->kernel_w : 1;
	g.run = g.taps * g.in_c + p->whole_rows;
	g.elements = w->kernel_h * (w->kernel_w / g.taps) * g.run;
	g.one_run = p->groups == 1 && w->kernel_h == 1 && g.taps == w->kernel_w;
	g.padded = (g.elements + 3) & ~3;
	g.reach = g.one_run ? g.padded
			    : (w->kernel_h - 1) * w->dilation_h * w->in_w * w->in_c + g.run;
	/* what is worth it was counted */
	g.narrow = g.taps == w->kernel_w && g.run % 2 == 0 && g.run <= w->kernel_h;
	g.down = g.taps == w->kernel_w && g.run % 2 == 0 && w->kernel_h > 1 &&
		 g.run <= (g.in_c % 2 == 0 ? 4 : 6) * w->kernel_h;
	g.flat = g.elements == g.in_c && g.elements == g.padded && w->stride_h == 1 &&
		 w->stride_w == 1 && w->pad_top == 0 && w->pad_left == 0 && w->out_w == w->in_w &&
		 w->out_h <= w->in_h && at.to_line == 0;
	g.window = (int16_t *)&g.columns[(1 + g.padded / 2) * WINDOWS];
	if (g.flat && (w->out_h != w->in_h || at.to_image != 0)) {
		images = w->batches;
		positions = w->out_h * w->out_w;
	}
	for (int32_t i = 0; i < p->groups; i++) {
		const uint32_t *next = weights;

		for (int32_t n = 0; n < images; n++) {
			conv_dsp_s16_prepare(p, &g, i * out_c, out_c, &walks);
			at.x = &x[n * w->in_h * w->in_w * w->in_c + i * g.in_c];
			at.y = &y[n * steps->image + i * out_c];
			at.row = 0;
			at.col = 0;
			next = conv_dsp_s16_positions(w, &g, &walks, weights, &at, positions);
		}
		weights = next;
	}
}

#endif /* TINYML_CORE_DSP */
