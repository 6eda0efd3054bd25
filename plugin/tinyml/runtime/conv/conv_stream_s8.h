/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Convolutions over a stream of filters (struct tinyml_conv_stream_s8): several windows at a time
 * are copied into columns and multiplied by two filters at a time.
 *
 * The file that includes this defines
 *
 *   WINDOWS           the number of columns
 *   WORD_STEP         words that four elements of all columns take; columns are interleaved
 *   put_word()        stores four elements in a column
 *   dot_pair()        adds products to sums[filter * WINDOWS + window]; returns the address after
 *                     the weights
 *   sum_column()      adds up the elements of a column
 *   rescale_sums()    turns sums into outputs
 *
 * With OWN_FILTERS, it defines apply_filters() and group_words() instead of the last three, and
 * with OWN_GROUPS convolve_group() as well.
 */

#ifndef TINYML_CONV_STREAM_S8_H_
#define TINYML_CONV_STREAM_S8_H_

#include <stdbool.h>
#include <string.h>

#include <tinyml/conv.h>
#include <tinyml/tinyml.h>

#include "../weighted/output_s8.h"

/* One group of a convolution: the channels that it reads, the filters that it applies. */
struct group {
	int32_t first_in;  /* first input channel */
	int32_t in_c;      /* input channels */
	int32_t first_out; /* first output channel */
	int32_t out_c;     /* output channels */
	int32_t column;    /* elements of a column, padded to whole words */
	const uint32_t *filters;
};

/* A column being filled. If the pieces of a window are not whole words, they are collected in
 * `bytes` first.
 */
struct column {
	uint32_t *to;
	int8_t *bytes;
	bool whole_words;
};

static inline uint32_t load_word(const int8_t *from)
{
	uint32_t word;

	memcpy(&word, from, sizeof(word)); /* the address need not be aligned */
	return word;
}

static inline void copy_words(uint32_t *to, const int8_t *from, int32_t count)
{
	for (const int8_t *end = from + count; from != end; from += 4, to += WORD_STEP) {
		put_word(to, load_word(from));
	}
}

static inline void copy_bytes(int8_t *to, const int8_t *from, int32_t count)
{
	if (count < 4) {
		while (count-- > 0) {
			*to++ = *from++;
		}
		return;
	}
	for (; count > 4; count -= 4, from += 4, to += 4) {
		memcpy(to, from, 4);
	}
	memcpy(&to[count - 4], &from[count - 4], 4); /* may overlap what was copied before */
}

/* Whether the window at a position is just the pixel there. With strides, padding can make the
 * output as large as the input. */
static inline bool single_pixels(const struct tinyml_window *w)
{
	return w->kernel_h * w->kernel_w * w->stride_h * w->stride_w == 1 &&
	       w->out_h * w->out_w == w->in_h * w->in_w;
}

/* Append a piece of a window to a column. */
__attribute__((noinline)) static void append(struct column *column, const int8_t *from,
					     int32_t count)
{
	if (column->whole_words) {
		copy_words(column->to, from, count);
		column->to += count / 4 * WORD_STEP;
	} else {
		copy_bytes(column->bytes, from, count);
		column->bytes += count;
	}
}

/* Append elements that lie outside the input: its zero point. */
static void append_padding(struct column *column, int32_t zero, int32_t count)
{
	int8_t zeros[4];

	memset(zeros, zero, sizeof(zeros));
	for (; count > 0; count -= 4) {
		append(column, zeros, count < 4 ? count : 4);
	}
}

static inline int32_t clamp_to_range(int32_t value, int32_t high)
{
	return value < 0 ? 0 : value > high ? high : value;
}

/* A window that extends past the input, or one with dilation or several groups. */
__attribute__((noinline)) static void gather_piecewise(const struct tinyml_conv_stream_s8 *p,
						       const struct group *g, const int8_t *x,
						       int32_t top, int32_t left,
						       struct column *column)
{
	const struct tinyml_window *w = &p->window;
	const int32_t in_c = g->in_c, in_w = w->in_w, kernel_w = w->kernel_w, zero = p->in_zero;
	/* Elements of a kernel row that are adjacent in the input: one tap, or the whole row. */
	const bool gaps = w->dilation_w != 1 || in_c != w->in_c;
	const int32_t piece = gaps ? 1 : kernel_w;

	for (int32_t ky = 0; ky < w->kernel_h; ky++) {
		const int32_t row = top + ky * w->dilation_h;

		for (int32_t kx = 0; kx < kernel_w; kx += piece) {
			const int32_t col = left + kx * w->dilation_w;
			const int32_t first = clamp_to_range(-col, piece);
			const int32_t end = clamp_to_range(in_w - col, piece);

			if (row < 0 || row >= w->in_h || first >= end) {
				append_padding(column, zero, piece * in_c);
				continue;
			}
			if (first > 0) {
				append_padding(column, zero, first * in_c);
			}
			append(column, &x[(row * in_w + col + first) * w->in_c],
			       (end - first) * in_c);
			if (end < piece) {
				append_padding(column, zero, (piece - end) * in_c);
			}
		}
	}
}

/* Copy the window at (top, left) into a column, or into its bytes if its pieces are not whole
 * words. */
static void collect_window(const struct tinyml_conv_stream_s8 *p, const struct group *g,
			   const int8_t *x, int32_t top, int32_t left, struct column column)
{
	const struct tinyml_window *w = &p->window;
	const int32_t row_bytes = w->in_w * w->in_c;

	x += g->first_in;
	if (top < 0 || left < 0 || top + w->kernel_h > w->in_h || left + w->kernel_w > w->in_w ||
	    w->dilation_h != 1 || w->dilation_w != 1 || g->in_c != w->in_c) {
		gather_piecewise(p, g, x, top, left, &column);
	} else {
		x += top * row_bytes + left * w->in_c;
		for (int32_t ky = w->kernel_h; ky > 0; ky--, x += row_bytes) {
			append(&column, x, w->kernel_w * w->in_c);
		}
	}
}

#ifdef OWN_FILTERS

static int32_t group_words(const struct group *g);
static void apply_filters(const struct tinyml_conv_stream_s8 *p, const struct group *g,
			  const uint32_t *columns, int8_t *y, int32_t count, int32_t step);

#else

/* Words that the filters of a group take in the stream. */
static int32_t group_words(const struct group *g)
{
	return (g->out_c + 1) / 2 * (g->column / 2 + 5);
}

/* Apply all filters of a group to `count` windows, whose outputs are `step` bytes apart. */
__attribute__((noinline)) static void apply_filters(const struct tinyml_conv_stream_s8 *p,
						    const struct group *g, const uint32_t *columns,
						    int8_t *y, int32_t count, int32_t step)
{
	const struct tinyml_output to =
		tinyml_output(p->round_once, p->out_zero, p->out_min, p->out_max);
	const int32_t words = g->column / 2, weight_zero = p->weight_zero;
	const uint32_t *w = g->filters;
	int32_t at[WINDOWS], zero[WINDOWS];

	for (int32_t i = 0; i < WINDOWS; i++) {
		/* Missing windows write to the last window's slot, which is written last. */
		at[i] = (i < count ? i : count - 1) * step;
		zero[i] = weight_zero == 0 ? 0 : weight_zero * sum_column(&columns[i], g->column);
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
		w = dot_pair(w + 2, w + 2 + words, columns, sums);
		rescale_sums(sums, (const int32_t *)w, (const int8_t *)&w[2], &to);
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

#endif /* OWN_FILTERS */

#ifdef OWN_GROUPS

static void convolve_group(const struct tinyml_conv_stream_s8 *p, const struct group *g,
			   const int8_t *x, int8_t *y, void *scratch);

#else

/* One group at all positions of one batch item. */
static void convolve_group(const struct tinyml_conv_stream_s8 *p, const struct group *g,
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
	const bool pointwise = column.whole_words && p->groups == 1 && single_pixels(w);
	int32_t at = p->from_the_end ? positions - 1 : 0, count = 0;

	if (!column.whole_words) { /* padding of the last word */
		memset(&column.bytes[g->column - 4], 0, 4);
	}
	y += g->first_out + at * w->out_c;
	for (int32_t left = positions; left > 0; left--, at += direction) {
		column.to = &columns[count++];
		if (pointwise) { /* a window is a pixel of the input */
			copy_words(column.to, &x[at * w->in_c], w->in_c);
		} else {
			const int32_t row = at / w->out_w, col = at - row * w->out_w;

			collect_window(p, g, x, row * w->stride_h - w->pad_top,
				       col * w->stride_w - w->pad_left, column);
			if (!column.whole_words) {
				copy_words(column.to, column.bytes, g->column);
			}
		}
		if (count == WINDOWS || left == 1) {
			apply_filters(p, g, columns, y, count, step);
			y += WINDOWS * step;
			count = 0;
		}
	}
}

#endif /* OWN_GROUPS */

static inline void convolve_stream(const struct tinyml_conv_stream_s8 *p, const int8_t *x,
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
		for (int32_t i = 0; i < p->groups; i++, g.filters += group_words(&g)) {
			g.first_in = i * g.in_c;
			g.first_out = i * g.out_c;
			convolve_group(p, &g, &x[n * w->in_h * w->in_w * w->in_c],
				       &y[n * w->out_h * w->out_w * w->out_c], scratch);
		}
	}
}

#endif /* TINYML_CONV_STREAM_S8_H_ */
