/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Convolutions: several windows meet two filters at a time. Windows are copied into columns; the
 * filters are a stream of words, with what their sums need (ops/_stream.py).
 *
 * The file that includes this says how many WINDOWS there are at a time, and how many words four
 * elements of all columns take (WORD_STEP). It defines put_word(), which puts four elements into a
 * column; dot(), which adds products to sums[filter * WINDOWS + window] and returns what follows
 * the filters; sum_column(), which adds up a column; and finish(), which makes outputs of sums.
 */

#ifndef TINYML_CONV_STREAM_S8_H_
#define TINYML_CONV_STREAM_S8_H_

#include <stdbool.h>
#include <string.h>

#include <tinyml/conv.h>

#include "../weighted/output_s8.h"

/* One group of a convolution: which channels it reads, which filters it
 * applies. */
struct group {
	int32_t first_in;  /* first input channel */
	int32_t in_c;      /* input channels */
	int32_t first_out; /* first output channel */
	int32_t out_c;     /* output channels */
	int32_t column;    /* elements of a column, in whole words */
	const uint32_t *filters;
};

/* A column that is being filled. Where the pieces of a window are not whole
 * words, they are put together in `bytes` first.
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

static inline void add_words(uint32_t *to, const int8_t *from, int32_t count)
{
	for (const int8_t *end = from + count; from != end; from += 4, to += WORD_STEP) {
		put_word(to, load_word(from));
	}
}

static inline void add_bytes(int8_t *to, const int8_t *from, int32_t count)
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

/* Add a piece of a window to a column. */
__attribute__((noinline)) static void add(struct column *column, const int8_t *from, int32_t count)
{
	if (column->whole_words) {
		add_words(column->to, from, count);
		column->to += count / 4 * WORD_STEP;
	} else {
		add_bytes(column->bytes, from, count);
		column->bytes += count;
	}
}

/* Add so many elements that lie outside of the input, where there is nothing but its zero point. */
static void add_padding(struct column *column, int32_t zero, int32_t count)
{
	int8_t zeros[4];

	memset(zeros, zero, sizeof(zeros));
	for (; count > 0; count -= 4) {
		add(column, zeros, count < 4 ? count : 4);
	}
}

static inline int32_t limited(int32_t value, int32_t high)
{
	return value < 0 ? 0 : value > high ? high : value;
}

/* A window that reaches beyond the input, or one with gaps. */
__attribute__((noinline)) static void gather_any(const struct tinyml_conv_stream_s8 *p,
						 const struct group *g, const int8_t *x,
						 int32_t top, int32_t left, struct column *column)
{
	const struct tinyml_window *w = &p->window;
	const int32_t in_c = g->in_c, in_w = w->in_w, kernel_w = w->kernel_w, zero = p->in_zero;
	/* Elements of a row that are neighbours in the input, too: taps, or all of the row. */
	const bool gaps = w->dilation_w != 1 || in_c != w->in_c;
	const int32_t piece = gaps ? 1 : kernel_w;

	for (int32_t ky = 0; ky < w->kernel_h; ky++) {
		const int32_t row = top + ky * w->dilation_h;

		for (int32_t kx = 0; kx < kernel_w; kx += piece) {
			const int32_t col = left + kx * w->dilation_w;
			const int32_t first = limited(-col, piece);
			const int32_t end = limited(in_w - col, piece);

			if (row < 0 || row >= w->in_h || first >= end) {
				add_padding(column, zero, piece * in_c);
				continue;
			}
			if (first > 0) {
				add_padding(column, zero, first * in_c);
			}
			add(column, &x[(row * in_w + col + first) * w->in_c], (end - first) * in_c);
			if (end < piece) {
				add_padding(column, zero, (piece - end) * in_c);
			}
		}
	}
}

/* The window at (top, left) as a column. */
static void gather(const struct tinyml_conv_stream_s8 *p, const struct group *g, const int8_t *x,
		   int32_t top, int32_t left, struct column column)
{
	const struct tinyml_window *w = &p->window;
	const int32_t row_bytes = w->in_w * w->in_c;
	const int8_t *bytes = column.bytes;

	x += g->first_in;
	if (top < 0 || left < 0 || top + w->kernel_h > w->in_h || left + w->kernel_w > w->in_w ||
	    w->dilation_h != 1 || w->dilation_w != 1 || g->in_c != w->in_c) {
		gather_any(p, g, x, top, left, &column);
	} else {
		x += top * row_bytes + left * w->in_c;
		for (int32_t ky = w->kernel_h; ky > 0; ky--, x += row_bytes) {
			add(&column, x, w->kernel_w * w->in_c);
		}
	}
	if (!column.whole_words) {
		add_words(column.to, bytes, g->column);
	}
}

/* All filters of a group at `count` positions, whose outputs are `step` bytes
 * apart. */
__attribute__((noinline)) static void filters(const struct tinyml_conv_stream_s8 *p,
					      const struct group *g, const uint32_t *columns,
					      int8_t *y, int32_t count, int32_t step)
{
	const struct tinyml_output to =
		tinyml_output(p->round_once, p->out_zero, p->out_min, p->out_max);
	const int32_t words = g->column / 2, weight_zero = p->weight_zero;
	const uint32_t *w = g->filters;
	int32_t at[WINDOWS], zero[WINDOWS];

	for (int32_t i = 0; i < WINDOWS; i++) {
		/* Outputs of windows that there are not are overwritten by the last one's.
		 */
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
		w = dot(w + 2, w + 2 + words, columns, sums);
		finish(sums, (const int32_t *)w, (const int8_t *)&w[2], &to);
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

/* One group at all positions of one item. */
static void convolve(const struct tinyml_conv_stream_s8 *p, const struct group *g, const int8_t *x,
		     int8_t *y, void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t positions = w->out_h * w->out_w, direction = p->from_the_end ? -1 : 1;
	const int32_t step = direction * w->out_c;
	uint32_t *columns = scratch;
	struct column column = {
		.bytes = (int8_t *)&columns[g->column / 4 * WORD_STEP],
		.whole_words = g->in_c % 4 == 0,
	};
	const bool pixels = w->kernel_h == 1 && w->kernel_w == 1 &&
			    positions == w->in_h * w->in_w && p->groups == 1 && column.whole_words;
	int32_t at = p->from_the_end ? positions - 1 : 0, count = 0;

	if (!column.whole_words) { /* what fills up the last word */
		memset(&column.bytes[g->column - 4], 0, 4);
	}
	y += g->first_out + at * w->out_c;
	for (int32_t left = positions; left > 0; left--, at += direction) {
		column.to = &columns[count++];
		if (pixels) { /* windows are positions of the input */
			add_words(column.to, &x[at * w->in_c], w->in_c);
		} else {
			const int32_t row = at / w->out_w, col = at - row * w->out_w;

			gather(p, g, x, row * w->stride_h - w->pad_top,
			       col * w->stride_w - w->pad_left, column);
		}
		if (count == WINDOWS || left == 1) {
			filters(p, g, columns, y, count, step);
			y += WINDOWS * step;
			count = 0;
		}
	}
}

static inline void convolve_all(const struct tinyml_conv_stream_s8 *p, const int8_t *x, int8_t *y,
				void *scratch)
{
	const struct tinyml_window *w = &p->window;
	struct group g = {.in_c = w->in_c / p->groups, .out_c = w->out_c / p->groups};
	int32_t pair;

	g.column = (w->kernel_h * w->kernel_w * g.in_c + 3) & ~3;
	pair = g.column / 2 + 5; /* words of two filters */
	for (int32_t item = 0; item < w->batches; item++) {
		const int32_t n = p->from_the_end ? w->batches - 1 - item : item;

		g.filters = (const uint32_t *)p->filters;
		for (int32_t i = 0; i < p->groups; i++, g.filters += (g.out_c + 1) / 2 * pair) {
			g.first_in = i * g.in_c;
			g.first_out = i * g.out_c;
			convolve(p, &g, &x[n * w->in_h * w->in_w * w->in_c],
				 &y[n * w->out_h * w->out_w * w->out_c], scratch);
		}
	}
}

#endif /* TINYML_CONV_STREAM_S8_H_ */
