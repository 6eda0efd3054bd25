/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions with Helium: four windows by two filters at a time. VMLADAV requires its sum in an
 * even register; all eight are in use.
 */

#include <tinyml/conv.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "conv_filters_mve_s8.h"
#include "conv_windows_mve_s8.h"

/* Four filters, or the last ones, whose outputs are not written as words. */
NOT_INLINED void conv_mve_s8_apply_four(const struct tinyml_conv_mve_s8 *p, struct filters *filters,
					int8_t *y, int32_t left)
{
	const int32_t adjust = filters->adjust, pair_bytes = filters->pair_bytes;
	const int32_t second = filters->others[0], third = filters->others[1];
	const int32_t fourth = filters->others[2], some = left < 4 ? left : 4;
	int8_t block[WINDOWS * 4];

	filters->y = block;
	filters->end = block + 4;
	filters->others[0] = 4;
	filters->others[1] = 8;
	filters->others[2] = 12;
	if (left <= 2) { /* there is no second pair: use the first again */
		filters->weights += adjust + pair_bytes;
		filters->adjust = -pair_bytes;
	}
	p->loop->apply(filters);
	filters->adjust = adjust;
	filters->others[0] = second;
	filters->others[1] = third;
	filters->others[2] = fourth;
	/* Outputs of the first window are written last. */
	conv_windows_mve_put(y + fourth, &block[12], some);
	conv_windows_mve_put(y + third, &block[8], some);
	conv_windows_mve_put(y + second, &block[4], some);
	conv_windows_mve_put(y, block, some);
}

/* Apply all filters to the windows in the columns. */
static inline void conv_mve_s8_apply_filters(const struct tinyml_conv_mve_s8 *p,
					     struct filters *filters, int8_t *y)
{
	int32_t at = p->window.out_c & ~3;

#ifndef __ARM_FEATURE_UNALIGNED
	if (!TINYML_ALIGNED(y, 4) || at != p->window.out_c) {
		at = 0;
	}
#endif
	filters->weights = p->weights - filters->adjust;
	filters->channels = p->channels;
	filters->y = y;
	filters->end = y + at;
	if (at > 0) {
		p->loop->apply(filters);
	}
	for (; at < p->window.out_c; at += 4) {
		conv_mve_s8_apply_four(p, filters, y + at, p->window.out_c - at);
	}
}

/* `groups`: the window is one of so many groups, or its taps are apart in the input; 0: neither. */
static inline __attribute__((always_inline)) void
conv_mve_s8_convolve(const struct tinyml_conv_mve_s8 *p, const int8_t *x, int8_t *y, void *scratch,
		     bool nibbles, int32_t groups)
{
	const struct tinyml_window *w = &p->window;
	const bool apart = groups != 0;
	/* From one pixel to the next. */
	const int32_t in_pixel = apart ? groups * w->in_c : w->in_c;
	const int32_t out_pixel = apart ? groups * w->out_c : w->out_c;
	const int32_t row_bytes = w->kernel_w * w->in_c, in_bytes = w->in_w * in_pixel;
	const int32_t elements = w->kernel_h * row_bytes;
	const int32_t vectors = (elements + TINYML_LANES - 1) / TINYML_LANES, more = vectors - 1;
	const int32_t step = p->from_the_end ? -out_pixel : out_pixel;
	const int32_t ahead = p->from_the_end ? -w->stride_w : w->stride_w;
	const bool undilated = apart || (w->dilation_h == 1 && w->dilation_w == 1);
	/* What windows span, in pixels. */
	const int32_t high = apart ? (w->kernel_h - 1) * w->dilation_h + 1 : w->kernel_h;
	const int32_t wide = apart ? (w->kernel_w - 1) * w->dilation_w + 1 : w->kernel_w;
	/* Windows of one element are one row, unless there is padding, with which strides can make
	 * the output as large as the input. */
	const bool flat = elements * w->stride_h * w->stride_w == w->in_c && w->in_h == w->out_h &&
			  w->in_w == w->out_w && undilated;
	const int32_t images = w->batches * w->out_h;
	const int32_t rows = flat ? 1 : images, width = flat ? images * w->out_w : w->out_w;
	/* Positions of a row whose windows lie inside the input: from `begin` on, before `end`. */
	const int32_t margin = (w->pad_left + w->stride_w - 1) / w->stride_w;
	const int32_t room = w->in_w + w->pad_left - wide;
	const int32_t fit = flat ? width : room < 0 ? 0 : room / w->stride_w + 1;
	const int32_t most = fit < width ? fit : width;
	const int32_t begin = p->from_the_end ? width - most : margin;
	const int32_t end = p->from_the_end ? width - margin : most;
	int8_t *const columns = scratch;
	uint16_t offsets[OFFSETS];
	struct taking taking = {
		.ahead = ahead * in_pixel,
		.in_bytes = apart ? w->dilation_h * in_bytes : in_bytes,
		.row_bytes = row_bytes,
		.rows = w->kernel_h,
		.elements = elements,
		.straight = (row_bytes % TINYML_LANES == 0 || w->kernel_h == 1) &&
			    (!apart || w->kernel_w == 1),
	};
	const struct runs runs = {.bytes = w->in_c, .step = w->dilation_w * in_pixel};
	struct filters filters;
	int32_t count = 0;
	bool before = false;

	TINYML_ASSERT(TINYML_ALIGNED(scratch, 4) && p->out_min <= p->out_max);
	if (apart) {
		taking.offsets =
			!taking.straight && conv_windows_mve_find_apart(&taking, &runs, offsets)
				? offsets
				: NULL;
	} else {
		taking.offsets = !taking.straight && conv_windows_mve_find_offsets(&taking, offsets)
					 ? offsets
					 : NULL;
	}
	filters.adjust = elements - vectors * TINYML_LANES; /* the second of a pair is not padded */
	filters.pair_bytes = (nibbles ? 1 : 2) * vectors * TINYML_LANES;
	filters.columns = columns;
	filters.rounds = (more + 3) / 4;
	filters.skip = more == 0 ? ROUND_BYTES : (4 - more % 4) % 4 * MULTIPLY_BYTES;
	filters.others[0] = step;
	filters.others[1] = 2 * step;
	filters.others[2] = 3 * step;
	filters.zero = p->out_zero;
	tinyml_fill(filters.low, (int8_t)p->out_min, TINYML_LANES);
	tinyml_fill(filters.high, (int8_t)p->out_max, TINYML_LANES);
	tinyml_fill(columns, 0, vectors * NEXT_VECTOR);
	y += p->from_the_end ? (images * w->out_w - 1) * out_pixel : 0;
	for (int32_t i = 0; i < rows; i++) {
		const int32_t row = p->from_the_end ? rows - 1 - i : i;
		const int32_t item = row / w->out_h, oy = row - item * w->out_h;
		const int8_t *from = &x[item * w->in_h * in_bytes];
		const int32_t top = oy * w->stride_h - w->pad_top;
		const bool inside = undilated && top >= 0 && top + high <= w->in_h;
		const int8_t *first = &from[top * in_bytes];
		const int32_t start = (p->from_the_end ? width - 1 : 0) * w->stride_w - w->pad_left;

		for (int32_t j = 0; j < width;) {
			int8_t *column = &columns[count * TINYML_LANES];
			int32_t taken = 1;

			/* Always a copy, so that outputs of a 1x1 convolution can be written over
			 * its inputs. */
			if (!inside || j < begin || j >= end) {
				const int32_t ox = p->from_the_end ? width - 1 - j : j;

				if (apart) {
					conv_windows_mve_gather_apart(p, from, in_pixel, oy, ox,
								      column);
				} else {
					conv_windows_mve_gather_piecewise(p, from, oy, ox, column);
				}
			} else {
				const int8_t *window = &first[(start + j * ahead) * in_pixel];

				taken = end - j < WINDOWS - count ? end - j : WINDOWS - count;
				if (apart) {
					conv_windows_mve_take_apart(&taking, &runs, column, window,
								    taken);
				} else {
					conv_windows_mve_take_windows(&taking, column, window,
								      taken);
				}
			}
			j += taken;
			count += taken;
			if (count == WINDOWS) {
				conv_mve_s8_apply_filters(p, &filters, y);
				before = true;
				y += WINDOWS * step;
				count = 0;
			}
		}
	}
	if (count > 0) {
		/* The other columns are still those of the windows before, whose outputs are
		 * written again. If there were none, outputs of the first window are written
		 * last. */
		for (int32_t i = count; i < WINDOWS; i++) {
			filters.others[i - 1] = before ? (i - WINDOWS) * step : 0;
		}
		conv_mve_s8_apply_filters(p, &filters, y);
	}
}

void tinyml_conv_mve_s8(const struct tinyml_conv_mve_s8 *p, const int8_t *x, int8_t *y,
			void *scratch)
{
	TINYML_ASSERT(p->round_once == (p->loop == &tinyml_conv_mve_once));
	conv_mve_s8_convolve(p, x, y, scratch, false, 0);
}

void tinyml_conv_nibbles_mve_s8(const struct tinyml_conv_mve_s8 *p, const int8_t *x, int8_t *y,
				void *scratch)
{
	TINYML_ASSERT(p->round_once == (p->loop == &tinyml_conv_mve_nibbles_once));
	conv_mve_s8_convolve(p, x, y, scratch, true, 0);
}

void tinyml_conv_groups_mve_s8(const struct tinyml_conv_groups_mve_s8 *p, const int8_t *x,
			       int8_t *y, void *scratch)
{
	struct tinyml_conv_mve_s8 group = p->conv;

	TINYML_ASSERT(!group.from_the_end || p->groups == 1);
	for (int32_t i = 0; i < p->groups; i++) {
		conv_mve_s8_convolve(&group, x, y, scratch, false, p->groups);
		group.weights += p->weight_bytes;
		group.channels += p->channel_words;
		x += group.window.in_c;
		y += group.window.out_c;
	}
}

#endif /* TINYML_CORE_MVE */
