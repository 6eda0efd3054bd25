/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Windows of the input as columns, as the convolutions over a stream of filters (conv_stream_s8.h)
 * use them: several windows at a time are copied into columns, which are interleaved.
 *
 * The file that includes this defines
 *
 *   WORD_STEP                 words that four elements of all columns take
 *   conv_columns_put_word()   stores four elements in a column
 */

#ifndef TINYML_CONV_COLUMNS_S8_H_
#define TINYML_CONV_COLUMNS_S8_H_

#include <stdbool.h>
#include <string.h>

#include <tinyml/conv.h>
#include <tinyml/tinyml.h>

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

static inline uint32_t conv_columns_load_word(const int8_t *from)
{
	uint32_t word;

	memcpy(&word, from, sizeof(word)); /* the address need not be aligned */
	return word;
}

static inline void conv_columns_copy_words(uint32_t *to, const int8_t *from, int32_t count)
{
	for (const int8_t *end = from + count; from != end; from += 4, to += WORD_STEP) {
		conv_columns_put_word(to, conv_columns_load_word(from));
	}
}

static inline void conv_columns_copy_bytes(int8_t *to, const int8_t *from, int32_t count)
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
static inline bool conv_columns_single_pixels(const struct tinyml_window *w)
{
	return w->kernel_h * w->kernel_w * w->stride_h * w->stride_w == 1 &&
	       w->out_h * w->out_w == w->in_h * w->in_w;
}

/* Append a piece of a window to a column. */
__attribute__((noinline)) static void conv_columns_append(struct column *column, const int8_t *from,
							  int32_t count)
{
	if (column->whole_words) {
		conv_columns_copy_words(column->to, from, count);
		column->to += count / 4 * WORD_STEP;
	} else {
		conv_columns_copy_bytes(column->bytes, from, count);
		column->bytes += count;
	}
}

/* Append elements that lie outside the input: its zero point. */
static void conv_columns_append_padding(struct column *column, int32_t zero, int32_t count)
{
	int8_t zeros[4];

	memset(zeros, zero, sizeof(zeros));
	for (; count > 0; count -= 4) {
		conv_columns_append(column, zeros, count < 4 ? count : 4);
	}
}

static inline int32_t conv_columns_clamp(int32_t value, int32_t high)
{
	return value < 0 ? 0 : value > high ? high : value;
}

/* A window that extends past the input, or one with dilation or several groups. */
__attribute__((noinline)) static void
conv_columns_gather_piecewise(const struct tinyml_conv_stream_s8 *p, const struct group *g,
			      const int8_t *x, int32_t top, int32_t left, struct column *column)
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
			const int32_t first = conv_columns_clamp(-col, piece);
			const int32_t end = conv_columns_clamp(in_w - col, piece);

			if (row < 0 || row >= w->in_h || first >= end) {
				conv_columns_append_padding(column, zero, piece * in_c);
				continue;
			}
			if (first > 0) {
				conv_columns_append_padding(column, zero, first * in_c);
			}
			conv_columns_append(column, &x[(row * in_w + col + first) * w->in_c],
					    (end - first) * in_c);
			if (end < piece) {
				conv_columns_append_padding(column, zero, (piece - end) * in_c);
			}
		}
	}
}

/* Copy the window at (top, left) into a column, or into its bytes if its pieces are not whole
 * words. */
static void conv_columns_collect(const struct tinyml_conv_stream_s8 *p, const struct group *g,
				 const int8_t *x, int32_t top, int32_t left, struct column column)
{
	const struct tinyml_window *w = &p->window;
	const int32_t row_bytes = w->in_w * w->in_c;

	x += g->first_in;
	if (top < 0 || left < 0 || top + w->kernel_h > w->in_h || left + w->kernel_w > w->in_w ||
	    w->dilation_h != 1 || w->dilation_w != 1 || g->in_c != w->in_c) {
		conv_columns_gather_piecewise(p, g, x, top, left, &column);
	} else {
		x += top * row_bytes + left * w->in_c;
		for (int32_t ky = w->kernel_h; ky > 0; ky--, x += row_bytes) {
			conv_columns_append(&column, x, w->kernel_w * w->in_c);
		}
	}
}

#endif /* TINYML_CONV_COLUMNS_S8_H_ */
