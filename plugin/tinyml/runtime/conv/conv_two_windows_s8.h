/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Convolutions over a stream of filters (conv_stream_s8.h), two windows at a time, which are copied
 * at once (conv_both_s8.h).
 *
 * The file that includes this defines conv_stream_apply_filters() and conv_stream_group_words().
 */

#ifndef TINYML_CONV_TWO_WINDOWS_S8_H_
#define TINYML_CONV_TWO_WINDOWS_S8_H_

#include "conv_both_s8.h"

/* One group at all positions of one batch item. */
static void conv_stream_convolve_group(const struct tinyml_conv_stream_s8 *p, const struct group *g,
				       const int8_t *x, int8_t *y, void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t positions = w->out_h * w->out_w, direction = p->from_the_end ? -1 : 1;
	const int32_t step = direction * w->out_c;
	uint32_t *columns = scratch;
	const bool whole_words = g->in_c % 4 == 0;
	const bool adjacent = w->dilation_h == 1 && w->dilation_w == 1 && p->groups == 1;
	const bool pointwise = conv_columns_single_pixels(w);
	int32_t at = p->from_the_end ? positions - 1 : 0;

	y += g->first_out + at * w->out_c;
	for (int32_t left = positions; left > 0; left -= 2, at += 2 * direction, y += 2 * step) {
		const int32_t neighbour = left > 1 ? direction : 0;

		if (!adjacent ||
		    !conv_both_gather(w, pointwise, x, at, neighbour, columns, g->column)) {
			int8_t *bytes = conv_both_bytes(columns, g->column);

			for (int32_t i = 0; i < WINDOWS; i++) {
				const struct column column = {&columns[i], bytes - i * g->column,
							      whole_words};

				conv_both_gather_one(p, g, x, at + i * neighbour, column);
			}
			if (!whole_words) {
				conv_both_spread(columns, g->column);
			}
		}
		conv_stream_apply_filters(p, g, columns, y, left, step);
	}
}

#define OWN_GROUPS
#include "conv_stream_s8.h"

#endif /* TINYML_CONV_TWO_WINDOWS_S8_H_ */
