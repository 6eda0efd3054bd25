/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * The filters of a convolution over a stream (conv_stream_s8.h), two at a time: each element of the
 * columns is loaded once for both.
 *
 * The file that includes this defines what conv_columns_s8.h asks for, and
 *
 *   WINDOWS                          the number of columns
 *   conv_two_filters_dot()           adds products to sums[filter * WINDOWS + window]; returns the
 *                                    address after the weights
 *   conv_two_filters_sum_column()    adds up the elements of a column
 *   conv_two_filters_rescale()       turns sums into outputs
 */

#ifndef TINYML_CONV_TWO_FILTERS_S8_H_
#define TINYML_CONV_TWO_FILTERS_S8_H_

#include "../weighted/output_s8.h"

#include "conv_columns_s8.h"

/* Words that the filters of a group take in the stream. */
static int32_t conv_stream_group_words(const struct group *g)
{
	return (g->out_c + 1) / 2 * (g->column / 2 + 5);
}

/* Apply all filters of a group to `count` windows, whose outputs are `step` bytes apart. */
__attribute__((noinline)) static void
conv_stream_apply_filters(const struct tinyml_conv_stream_s8 *p, const struct group *g,
			  const uint32_t *columns, int8_t *y, int32_t count, int32_t step)
{
	const struct tinyml_output to =
		tinyml_output(p->round_once, p->out_zero, p->out_min, p->out_max);
	const int32_t words = g->column / 2, weight_zero = p->weight_zero;
	const uint32_t *w = g->filters;
	int32_t at[WINDOWS], zero[WINDOWS];

	for (int32_t i = 0; i < WINDOWS; i++) {
		/* Missing windows write to the last window's slot, which is written last. */
		at[i] = (i < count ? i : count - 1) * step;
		zero[i] = weight_zero == 0 ? 0
					   : weight_zero * conv_two_filters_sum_column(&columns[i],
										       g->column);
	}
	for (int32_t left = g->out_c; left > 0; left -= 2, y += 2) {
		int32_t sums[2 * WINDOWS];

		for (int32_t i = 0; i < WINDOWS; i++) {
			sums[i] = (int32_t)w[0];
			sums[WINDOWS + i] = (int32_t)w[1];
		}
		if (weight_zero != 0) {
			for (int32_t i = 0; i < WINDOWS; i++) {
				sums[i] -= zero[i];
				sums[WINDOWS + i] -= zero[i];
			}
		}
		w = conv_two_filters_dot(w + 2, w + 2 + words, columns, sums);
		conv_two_filters_rescale(sums, (const int32_t *)w, (const int8_t *)&w[2], &to);
		w += 3;
		for (int32_t i = WINDOWS - 1; i > 0; i--) {
			y[at[i]] = (int8_t)sums[i];
		}
		y[0] = (int8_t)sums[0];
		if (left > 1) { /* a last odd filter has no partner */
			for (int32_t i = WINDOWS - 1; i > 0; i--) {
				y[at[i] + 1] = (int8_t)sums[WINDOWS + i];
			}
			y[1] = (int8_t)sums[WINDOWS];
		}
	}
}

#endif /* TINYML_CONV_TWO_FILTERS_S8_H_ */
