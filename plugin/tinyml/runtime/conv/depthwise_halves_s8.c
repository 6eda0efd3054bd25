/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise 3x3 convolutions for Arm cores without DSP instructions: two outputs of a channel at a
 * time, one of the upper half of the output and one of the lower half. Their elements are in one
 * word, h = 65536 * p + q, so that one multiplication by a weight serves both.
 *
 * Products of two elements are added, A = w0 * h0 + w1 * h1, before they are taken apart. The
 * compiler proves for every layer that |w0| + |w1| <= 255, so both sums are within int16. Then
 * (A + 32768) >> 16 is exactly w0 * p0 + w1 * p1, and these add up to P. The A add up to T modulo
 * 2^32, so Q = T - 65536 * P in the end. */

#include <stddef.h>

#include <tinyml/tinyml.h>

#if defined(__thumb__) && !TINYML_CORE_DSP

#include <tinyml/depthwise_conv.h>

#include "../weighted/assembly.h"
#include "../weighted/output_s8.h"

#define KERNEL    3
#define ROW_BYTES ((int32_t)sizeof(int32_t) * KERNEL)

/* What the walk over the output of a channel is given. Assembly knows the order of the members. */
struct walk {
	int32_t bias;  /* P at the start */
	int32_t begin; /* T at the start */
	int32_t weights[KERNEL * KERNEL];
	int32_t factor_low;
	int32_t factor_high;
	int32_t exponent;
	int32_t twice_zero;
	int32_t below; /* from an output of the upper half to that of the lower half */
	int32_t next;  /* from the end of a window to the next window of the row, in bytes */
	int32_t y_step;
	const int32_t *row_end; /* where the window after the last one of the row would be */
	int32_t down;           /* from the end of a row of a window to its next row, in bytes */
	const int32_t *row;     /* the first window of the row */
	int8_t *y;              /* its output */
	int32_t line;           /* from one row of windows to the next, in bytes */
	int32_t y_line;
	int32_t rows;
};

#if defined(__thumb2__)
#include "depthwise_halves_armv7m.h"
#else
#include "depthwise_halves_armv6m.h"
#endif

/* The words of a channel: rows that windows of the upper half reach, together with those `apart`
 * rows below. */
struct words {
	int32_t *at;
	int32_t height;
	int32_t width;
	int32_t apart;
	int32_t x_step; /* from one element of a row of the input to the next, in bytes */
	int32_t x_line; /* from one row to the next */
};

static inline int32_t join(int8_t upper, int8_t lower)
{
	return (int32_t)(((uint32_t)lower << 16) + (uint32_t)upper);
}

/* Elements of two rows, of which the lower one is `below` bytes after the upper one. */
static void join_rows(int32_t *to, const int32_t *end, const int8_t *x, int32_t below, int32_t step)
{
	for (; end - to >= 2; to += 2) {
		to[0] = join(x[0], x[below]);
		x += step;
		to[1] = join(x[0], x[below]);
		x += step;
	}
	if (to != end) {
		*to = join(x[0], x[below]);
	}
}

/* Elements of one row (none if x is NULL) and padding in the other. */
static void join_padding(int32_t *to, const int32_t *end, const int8_t *x, int32_t step, bool upper,
			 int8_t padding)
{
	for (; to != end; to++, x += x != NULL ? step : 0) {
		const int8_t value = x != NULL ? *x : padding;

		*to = upper ? join(value, padding) : join(padding, value);
	}
}

static void fill_words(const struct words *words, const struct tinyml_depthwise_conv_s8 *p,
		       const int8_t *x)
{
	const struct tinyml_window *w = &p->window;
	const int32_t in_h = w->in_h, most = words->width - w->pad_left;
	const int32_t cols = most < w->in_w ? most : w->in_w;
	const int32_t step = words->x_step, line = words->x_line;
	const int32_t apart = words->apart, below = apart * line;
	int32_t *to = &words->at[w->pad_left];
	int32_t at = -w->pad_top * line;

	for (int32_t row = -w->pad_top, left = words->height; left > 0; left--, row++, at += line) {
		const bool upper = row >= 0 && row < in_h;
		const bool lower = row + apart >= 0 && row + apart < in_h;

		if (upper && lower) {
			join_rows(to, to + cols, &x[at], below, step);
		} else {
			join_padding(to, to + cols,
				     upper   ? &x[at]
				     : lower ? &x[at + below]
					     : NULL,
				     step, upper, (int8_t)p->in_zero);
		}
		to += words->width;
	}
}

void tinyml_depthwise_halves_s8(const struct tinyml_depthwise_conv_s8 *p, const int8_t *x,
				int8_t *y, void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t multiple = w->out_c / w->in_c, half = (w->out_h + 1) / 2;
	const bool turned = p->transposed;
	const struct words words = {
		.at = scratch,
		.height = (half - 1) * w->stride_h + KERNEL,
		.width = (w->out_w - 1) * w->stride_w + KERNEL,
		.apart = (w->out_h - half) * w->stride_h,
		.x_step = turned ? w->in_h * w->in_c : w->in_c,
		.x_line = turned ? w->in_c : w->in_w * w->in_c,
	};
	const int32_t line = words.width * (int32_t)sizeof(int32_t);
	const int32_t step = w->stride_w * (int32_t)sizeof(int32_t);
	struct walk walk = {
		.twice_zero = TWICE_ZERO(p->out_zero),
		.down = line - ROW_BYTES,
		.next = step - 2 * line - ROW_BYTES,
		.y_step = turned ? w->out_h * w->out_c : w->out_c,
		.y_line = turned ? w->out_c : w->out_w * w->out_c,
		.line = line * w->stride_h,
	};

	TINYML_ASSERT(TINYML_ALIGNED(scratch, 4) && w->out_c % w->in_c == 0 && w->out_h > 0);
	walk.below = (w->out_h - half) * walk.y_line;
	for (int32_t n = 0; n < w->batches; n++) {
		const int8_t *weights = p->weights;

		for (int32_t i = 0; i < words.height * words.width; i++) {
			words.at[i] = (int32_t)((uint32_t)p->in_zero * 0x10001u);
		}
		for (int32_t i = 0; i < w->out_c; i++) {
			if (multiple == 1 || i % multiple == 0) {
				fill_words(&words, p, &x[i / multiple]);
			}
			for (int32_t k = 0; k < KERNEL * KERNEL; k++) {
				walk.weights[k] = *weights++;
			}
			walk.bias = p->bias[i];
			walk.begin = (int32_t)((uint32_t)walk.bias * 0x10001u - ROUNDINGS);
			set_factor(&walk, p->multiplier[i], p->shift[i]);
			walk.row = words.at;
			walk.row_end = words.at + w->out_w * w->stride_w;
			walk.rows = half;
			walk.y = &y[i];
			if (p->round_once) {
				walk_once(&walk);
			} else {
				walk_twice(&walk);
			}
		}
		x += w->in_h * w->in_w * w->in_c;
		y += w->out_h * w->out_w * w->out_c;
	}
}

#endif /* defined(__thumb__) && !TINYML_CORE_DSP */
