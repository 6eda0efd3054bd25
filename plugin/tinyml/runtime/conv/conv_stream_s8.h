/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Convolutions over a stream of filters (struct tinyml_conv_stream_s8): the walk over batch items,
 * groups and positions. Several windows at a time become columns (conv_columns_s8.h), to which all
 * filters of their group are applied.
 *
 * The file that includes this defines what conv_columns_s8.h asks for, and
 *
 *   WINDOWS                       the number of columns
 *   conv_stream_group_words()     the words that the filters of a group take in the stream
 *   conv_stream_apply_filters()   applies all filters of a group to `count` windows, whose outputs
 *                                 are `step` bytes apart
 *
 * (conv_two_filters_s8.h has both for two filters at a time), and with OWN_GROUPS
 *
 *   conv_stream_convolve_group()  one group at all positions of one batch item
 */

#ifndef TINYML_CONV_STREAM_S8_H_
#define TINYML_CONV_STREAM_S8_H_

#include "conv_columns_s8.h"

#ifndef OWN_GROUPS

/* One group at all positions of one batch item. */
static void conv_stream_convolve_group(const struct tinyml_conv_stream_s8 *p, const struct group *g,
				       const int8_t *x, int8_t *y, void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t positions = w->out_h * w->out_w, direction = p->from_the_end ? -1 : 1;
	const int32_t step = direction * w->out_c;
	uint32_t *columns = scratch;
	struct column column = {
		.bytes = (int8_t *)&columns[g->column / 4 * WORD_STEP],
		.whole_words = g->in_c % 4 == 0,
	};
	const bool pointwise =
		column.whole_words && p->groups == 1 && conv_columns_single_pixels(w);
	int32_t at = p->from_the_end ? positions - 1 : 0, count = 0;

	if (!column.whole_words) { /* padding of the last word */
		memset(&column.bytes[g->column - 4], 0, 4);
	}
	y += g->first_out + at * w->out_c;
	for (int32_t left = positions; left > 0; left--, at += direction) {
		column.to = &columns[count++];
		if (pointwise) { /* a window is a pixel of the input */
			conv_columns_copy_words(column.to, &x[at * w->in_c], w->in_c);
		} else {
			const int32_t row = at / w->out_w, col = at - row * w->out_w;

			conv_columns_collect(p, g, x, row * w->stride_h - w->pad_top,
					     col * w->stride_w - w->pad_left, column);
			if (!column.whole_words) {
				conv_columns_copy_words(column.to, column.bytes, g->column);
			}
		}
		if (count == WINDOWS || left == 1) {
			conv_stream_apply_filters(p, g, columns, y, count, step);
			y += WINDOWS * step;
			count = 0;
		}
	}
}

#endif /* OWN_GROUPS */

static inline void conv_stream_convolve(const struct tinyml_conv_stream_s8 *p, const int8_t *x,
					int8_t *y, void *scratch)
{
	const struct tinyml_window *w = &p->window;
	struct group g = {.in_c = w->in_c / p->groups, .out_c = w->out_c / p->groups};

	g.column = (w->kernel_h * w->kernel_w * g.in_c + 3) & ~3;
	TINYML_ASSERT(w->in_c % p->groups == 0 && w->out_c % p->groups == 0);
	TINYML_ASSERT(TINYML_ALIGNED(scratch, 4) && TINYML_ALIGNED(p->filters, 4));
	TINYML_ASSERT(p->out_min <= p->out_max);
	for (int32_t item = 0; item < w->batches; item++) {
		const int32_t n = p->from_the_end ? w->batches - 1 - item : item;

		g.filters = (const uint32_t *)p->filters;
		for (int32_t i = 0; i < p->groups; i++, g.filters += conv_stream_group_words(&g)) {
			g.first_in = i * g.in_c;
			g.first_out = i * g.out_c;
			conv_stream_convolve_group(p, &g, &x[n * w->in_h * w->in_w * w->in_c],
						   &y[n * w->out_h * w->out_w * w->out_c], scratch);
		}
	}
}

#endif /* TINYML_CONV_STREAM_S8_H_ */
