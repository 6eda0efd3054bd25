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

/* The sum of a filter whose pair is zeros, at a window. */
static int32_t conv_dsp_s16_dot(const uint32_t *weights, const int16_t *x, int32_t fours)
{
	int32_t sum = 0;

#define PRODUCTS(i)                                                                                \
	(sum = __smlad(tinyml_even_bytes(weights[i]), (int16x2_t)tinyml_load_word(x + 2 * (i)),    \
		       sum))
	for (; fours >= 2; fours -= 2, weights += 4, x += 8) {
		PRODUCTS(0);
		PRODUCTS(1);
		PRODUCTS(2);
		PRODUCTS(3);
	}
	if (fours > 0) {
		PRODUCTS(0);
		PRODUCTS(1);
	}
#undef PRODUCTS
	return sum;
}

/* The outputs of a convolution with a single filter: columns would be more work than products. */
static void conv_dsp_s16_single(const struct tinyml_conv_dsp_s16 *p,
				const struct conv_columns_dsp_s16 *g, const int16_t *x, int16_t *y,
				int32_t step)
{
	const struct tinyml_window *w = &p->window;
	/* Without a shift, factors are below 2^30. */
	const int32_t factor = p->shift != NULL ? p->factor[0] : 2 * p->factor[0];
	const int32_t shift = p->shift != NULL ? p->shift[0] : 1;

	for (int32_t row = 0; row < w->out_h; row++) {
		const int32_t top = row * w->stride_h - w->pad_top;

		for (int32_t col = 0; col < w->out_w; col++, y += step) {
			const int32_t left = col * w->stride_w - w->pad_left;
			const bool inside = conv_columns_dsp_s16_inside(w, top, left);
			const int16_t *window =
				conv_columns_dsp_s16_window(w, g, x, top, left, inside);
			const int32_t sum = conv_dsp_s16_dot((const uint32_t *)p->weights, window,
							     g->padded / 4);

			*y = tinyml_output_s16(sum + p->bias[0], factor, shift, p->out_min,
					       p->out_max);
		}
	}
}

/* The walk over a last filter alone, whose pair is zeros: nothing is read behind the tables. */
struct conv_dsp_s16_odd {
	struct conv_walk_dsp_s16 walk;
	int32_t bias[2];
	int32_t factor[2];
	uint8_t shift[2];
};

/* What is the same for all positions of a group of `out_c` filters. */
static void conv_dsp_s16_prepare(const struct tinyml_conv_dsp_s16 *p,
				 const struct conv_columns_dsp_s16 *g, int32_t first_out,
				 int32_t out_c, int32_t step, struct conv_walk_dsp_s16 *walk,
				 struct conv_dsp_s16_odd *odd)
{
	const int32_t fours = g->padded / 4 - 1; /* the first ones are no part of a turn */
	const int32_t last = first_out + out_c - 1;

	walk->columns = g->columns;
	walk->bias = &p->bias[first_out];
	walk->columns_end = g->columns + (1 + g->padded / 2) * WINDOWS;
	walk->skipped = fours == 0 ? TURN * FOUR_BYTES + CHECK_BYTES
				   : (TURN - 1 - (fours - 1) % TURN) * FOUR_BYTES;
	walk->factor = &p->factor[first_out];
	walk->shift = p->shift != NULL ? &p->shift[first_out] : NULL;
	walk->step = 2 * step;
	walk->low = (uint16_t)p->out_min * UINT32_C(0x10001);
	walk->high = (uint16_t)p->out_max * UINT32_C(0x10001);
	walk->rare = (p->shift != NULL ? SHIFTS : 0) |
		     (p->out_min == 0 && p->out_max == INT16_MAX ? 0 : LIMITS);
	walk->count = WINDOWS;
	walk->both = 1;
	if (out_c % 2 != 0) {
		odd->bias[0] = p->bias[last];
		odd->bias[1] = 0;
		odd->factor[0] = p->factor[last];
		odd->factor[1] = 0;
		odd->shift[0] = p->shift != NULL ? p->shift[last] : 0;
		odd->shift[1] = 1;
		odd->walk = *walk;
		odd->walk.bias = odd->bias;
		odd->walk.factor = odd->factor;
		odd->walk.shift = p->shift != NULL ? odd->shift : NULL;
		odd->walk.rare |= SOME;
		odd->walk.both = 0;
	}
}

void tinyml_conv_dsp_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y,
			 void *scratch)
{
	tinyml_conv_steps_dsp_s16(p, x, y, p->window.out_c, scratch);
}

/* All positions of an image. Returns what follows the weights of the group. */
static const uint32_t *conv_dsp_s16_image(const struct tinyml_conv_dsp_s16 *p,
					  const struct conv_columns_dsp_s16 *g,
					  struct conv_walk_dsp_s16 *walk,
					  struct conv_dsp_s16_odd *odd, const uint32_t *weights,
					  const int16_t *x, int16_t *y, int32_t step)
{
	const struct tinyml_window *w = &p->window;
	const int32_t positions = w->out_h * w->out_w, out_c = w->out_c / p->groups;
	const int32_t in_c = w->in_c, even = out_c & ~1;
	const uint32_t *next = weights;

	for (int32_t at = 0; at < positions; at += WINDOWS, y += WINDOWS * step) {
		const int32_t left = positions - at;
		const int32_t count = left < WINDOWS ? left : WINDOWS;

		if (g->flat) {
			conv_columns_dsp_s16_collect_flat(g, &x[at * in_c + g->first_in], in_c,
							  count);
		} else if (g->narrow) {
			conv_columns_dsp_s16_collect_narrow(w, g, x, at, count);
		} else {
			conv_columns_dsp_s16_collect(w, g, x, at, count);
		}
		next = weights;
		if (even > 0) {
			next = conv_walk_dsp_s16_apply(walk, next, y, even, count);
		}
		if (out_c != even) {
			next = conv_walk_dsp_s16_apply(&odd->walk, next, &y[even], 2, count);
		}
	}
	return next;
}

void tinyml_conv_steps_dsp_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y,
			       int32_t step, void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t out_c = w->out_c / p->groups;
	struct conv_columns_dsp_s16 g = {.in_c = w->in_c / p->groups, .columns = scratch};
	struct conv_walk_dsp_s16 walk;
	struct conv_dsp_s16_odd odd;

	TINYML_ASSERT(w->in_c % p->groups == 0 && w->out_c % p->groups == 0);
	TINYML_ASSERT(TINYML_ALIGNED(scratch, 4) && TINYML_ALIGNED(p->weights, 4));
	g.elements = w->kernel_h * w->kernel_w * g.in_c;
	g.taps = w->dilation_w == 1 && p->groups == 1 ? w->kernel_w : 1;
	g.one_run = p->groups == 1 && w->kernel_h == 1 && g.taps == w->kernel_w;
	g.padded = (g.elements + 3) & ~3;
	g.flat = g.elements == g.in_c && g.elements == g.padded && w->stride_h == 1 &&
		 w->stride_w == 1 && w->pad_top == 0 && w->pad_left == 0 && w->out_w == w->in_w &&
		 w->out_h <= w->in_h;
	g.narrow = g.taps == w->kernel_w && g.taps * g.in_c % 2 == 0 &&
		   g.taps * g.in_c <= 2 * w->kernel_h;
	g.window = (int16_t *)&g.columns[(1 + g.padded / 2) * WINDOWS];
	for (int32_t n = 0; n < w->batches; n++) {
		const uint32_t *weights = (const uint32_t *)p->weights;

		if (w->out_c == 1) {
			conv_dsp_s16_single(p, &g, x, y, step);
		}
		for (int32_t i = 0; w->out_c > 1 && i < p->groups; i++) {
			g.first_in = i * g.in_c;
			conv_dsp_s16_prepare(p, &g, i * out_c, out_c, step, &walk, &odd);
			weights = conv_dsp_s16_image(p, &g, &walk, &odd, weights, x, &y[i * out_c],
						     step);
		}
		x += w->in_h * w->in_w * w->in_c;
		y += w->out_h * w->out_w * step;
	}
}

#endif /* TINYML_CORE_DSP */
