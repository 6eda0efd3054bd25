/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions whose filters are short, with DSP instructions: windows are multiplied where they
 * are in the input, row by row. Weights are int16, so that each word of a window meets them without
 * more instructions. A window meets four filters at a time, two windows the last two filters, four
 * windows a single one (conv_short_loops_dsp_s8.h).
 */

#include <tinyml/conv.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include "../weighted/dsp_s8.h"

#ifdef __ARM_FEATURE_UNALIGNED
#include "conv_short_loops_dsp_s8.h"
#else
#include "conv_short_loops_s8.h"
#endif

typedef struct tinyml_conv_short_dsp_walk conv_short_walk;

struct conv_short {
	const struct tinyml_conv_short_s8 *p;
	int32_t row;
	int32_t elements; /* words of a filter's weights */
	conv_short_walk walk;
};

static const int32_t *conv_short_choose(struct conv_short *c, const int32_t *filters, int32_t size)
{
	c->walk.end = filters + size + size * c->elements;
	return c->walk.end + size + 1;
}

#include "conv_short_s8.h"

#define WINDOWS 4 /* that are copied at a time */

static void conv_short_dsp_lines(struct conv_short *c, int32_t line)
{
	c->walk.skip = line - 4 * c->walk.words;
}

/* Make a row of so many elements, and of padding, of which some is before these. May write to the
 * end of a word.
 */
static inline void conv_short_dsp_put(const struct conv_short *c, int8_t *to, int32_t before,
				      const int8_t *from, int32_t count)
{
	const uint32_t zeros = 0x01010101u * (uint8_t)c->p->in_zero;

	if (count < c->row) {
		for (int32_t i = 0; i < c->row; i += 4) {
			memcpy(&to[i], &zeros, 4);
		}
		to += before;
	}
	for (; count >= 4; count -= 4, to += 4, from += 4) {
		memcpy(to, from, 4);
	}
	for (; count > 0; count--) {
		*to++ = *from++;
	}
}

/* Copy the window at (top, left), of which some may be padding. */
static void conv_short_dsp_take(const struct conv_short *c, const int8_t *x, int32_t top,
				int32_t left, int8_t *to)
{
	const struct tinyml_window *w = &c->p->window;
	const int32_t room = w->in_w - left, end = room < w->kernel_w ? room : w->kernel_w;
	const int32_t from = left < 0 ? -left : 0, count = (end - from) * w->in_c;
	const int32_t before = from * w->in_c, line = w->in_w * w->in_c;

	x += top * line + left * w->in_c + before;
	for (int32_t i = w->kernel_h; i > 0; i--, top += w->dilation_h) {
		const bool inside = top >= 0 && top < w->in_h && count > 0;

		conv_short_dsp_put(c, to, before, x, inside ? count : 0);
		x += w->dilation_h * line;
		to += c->row;
	}
}

/* So many windows from position (row, col) on, down or along a row of outputs, as copies. */
static void conv_short_dsp_apart(struct conv_short *c, const int8_t *x, int8_t *y, int8_t *scratch,
				 int32_t row, int32_t col, int32_t count, bool down)
{
	const struct tinyml_window *w = &c->p->window;
	const int32_t step = c->walk.step;
	const int32_t bytes = w->kernel_h * c->row;
	const int32_t out_step = down ? w->out_w * w->out_c : w->out_c;
	const int32_t deeper = down ? w->stride_h : 0, farther = down ? 0 : w->stride_w;
	int32_t top = row * w->stride_h - w->pad_top, left = col * w->stride_w - w->pad_left;

	y += (row * w->out_w + col) * w->out_c;
	c->walk.step = bytes;
	c->walk.out_step = out_step;
	conv_short_dsp_lines(c, c->row);
	for (int32_t some; count > 0; count -= some, y += some * out_step) {
		some = count < WINDOWS ? count : WINDOWS;
		for (int32_t i = 0; i < some; i++, top += deeper, left += farther) {
			conv_short_dsp_take(c, x, top, left, &scratch[i * bytes]);
		}
		conv_short_run(c, scratch, y, some);
	}
	c->walk.step = step;
	c->walk.out_step = w->out_c;
	conv_short_dsp_lines(c, w->dilation_h * w->in_w * w->in_c);
}

static inline void conv_short_dsp_convolve(struct conv_short *c, const int8_t *x, int8_t *y,
					   int8_t *scratch)
{
	const struct tinyml_conv_short_s8 *p = c->p;
	const struct tinyml_window *w = &p->window;
	const int32_t line = w->in_w * w->in_c, first = p->cols.begin;

	c->walk.step = w->stride_w * w->in_c;
	c->walk.out_step = w->out_c;
	conv_short_dsp_lines(c, w->dilation_h * line);
	TINYML_ASSERT(w->dilation_w == 1 || w->kernel_w == 1);
	TINYML_ASSERT(TINYML_ALIGNED(p->filters, 4));
	for (int32_t n = w->batches; n > 0; n--) {
		for (int32_t i = 0; i < w->out_h; i++) {
			const int32_t top = i * w->stride_h - w->pad_top;
			const int32_t end = i == p->lowest ? p->lowest_end : p->cols.end;

			if (i < p->rows.begin || i >= p->rows.end) {
				conv_short_dsp_apart(c, x, y, scratch, i, 0, w->out_w, false);
				continue;
			}
			if (end > first) {
				conv_short_run(c,
					       &x[top * line + first * c->walk.step -
						  w->pad_left * w->in_c],
					       &y[(i * w->out_w + first) * w->out_c], end - first);
			}
			if (p->cols.end > end) {
				conv_short_dsp_apart(c, x, y, scratch, i, end, p->cols.end - end,
						     false);
			}
		}
		for (int32_t j = 0; j < w->out_w; j++) {
			if (j == first) {
				j = p->cols.end;
			}
			if (j < w->out_w) {
				conv_short_dsp_apart(c, x, y, scratch, p->rows.begin, j,
						     p->rows.end - p->rows.begin, true);
			}
		}
		x += w->in_h * line;
		y += w->out_h * w->out_w * w->out_c;
	}
}

void tinyml_conv_short_dsp_s8(const struct tinyml_conv_short_s8 *p, const int8_t *x, int8_t *y,
			      void *scratch)
{
	struct conv_short c;

	c.p = p;
	c.row = p->window.kernel_w * p->window.in_c;
	c.walk.words = (c.row + 3) / 4;
	c.walk.twice_zero = 2 * p->out_zero + 1;
	c.elements = 2 * p->window.kernel_h * c.walk.words;
	conv_short_dsp_convolve(&c, x, y, scratch);
}

#endif /* TINYML_CORE_DSP */
