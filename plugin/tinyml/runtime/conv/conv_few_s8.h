/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Convolutions with few filters: windows are multiplied where they are in the input, four of a row
 * at a time. Only windows with padding are copied. The file that includes this has, before that,
 *
 *   conv_few_dot(): add the products of a filter to four sums
 */

#ifndef TINYML_CONV_FEW_S8_H_
#define TINYML_CONV_FEW_S8_H_

#include <string.h>

#include <tinyml/conv.h>
#include <tinyml/tinyml.h>

#include "../weighted/output_s8.h"
#include "conv_few_windows.h"

/* Copy the window at (top, left), of which some is padding. */
static void conv_few_copy(const struct tinyml_conv_few_s8 *p, const int8_t *x, int32_t top,
			  int32_t left, int8_t *to)
{
	const struct tinyml_window *w = &p->window;
	const int32_t row = w->kernel_w * w->in_c, from = left < 0 ? -left : 0;
	const int32_t room = w->in_w - left, end = room < w->kernel_w ? room : w->kernel_w;

	if (from > 0 || end < w->kernel_w || top < 0 ||
	    top + (w->kernel_h - 1) * w->dilation_h >= w->in_h) {
		memset(to, p->in_zero, (size_t)(w->kernel_h * row));
	}
	if (end <= from) {
		return;
	}
	x += (left + from) * w->in_c;
	to += from * w->in_c;
	for (int32_t i = 0; i < w->kernel_h; i++, top += w->dilation_h, to += row) {
		if (top >= 0 && top < w->in_h) {
			memcpy(to, &x[top * w->in_w * w->in_c], (size_t)((end - from) * w->in_c));
		}
	}
}

/* The outputs of all filters at these windows. */
static void conv_few_outputs(const struct tinyml_conv_few_s8 *p, const struct conv_few_windows *x,
			     const struct tinyml_output *to)
{
	const int32_t rows = p->window.kernel_h, row = p->window.kernel_w * p->window.in_c;
	const int8_t *weights = p->weights;

	for (int32_t i = 0; i < p->window.out_c; i++, weights += rows * row) {
		const int32_t bias = p->bias[i], multiplier = p->multiplier[i], shift = p->shift[i];
		int32_t sums[WINDOWS] = {bias, bias, bias, bias};

		conv_few_dot(x, weights, rows, row, sums);
		for (int32_t j = 0; j < x->count; j++) {
			x->outputs[j][i] = tinyml_output_s8(sums[j], multiplier, shift, to);
		}
	}
}

/* Windows of a row of outputs that lie inside the input: the first of them, and the end. */
struct conv_few_span {
	int32_t begin;
	int32_t end;
};

/* All of them, and none if they are too few. */
static struct conv_few_span conv_few_inside(const struct tinyml_window *w, int32_t top)
{
	const int32_t last = top + (w->kernel_h - 1) * w->dilation_h;
	const int32_t room = w->in_w + w->pad_left - w->kernel_w;
	struct conv_few_span inside = {
		.begin = (w->pad_left + w->stride_w - 1) / w->stride_w,
		.end = room < 0 ? 0 : room / w->stride_w + 1,
	};

	inside.end = inside.end < w->out_w ? inside.end : w->out_w;
	if (top < 0 || last >= w->in_h || inside.end - inside.begin < WINDOWS) {
		inside.begin = w->out_w;
		inside.end = w->out_w;
	}
	return inside;
}

/* `pixel`: outputs from one position to the next. */
static inline __attribute__((always_inline)) void
conv_few_convolve(const struct tinyml_conv_few_s8 *p, const int8_t *x, int8_t *y, int32_t pixel,
		  int8_t *columns)
{
	const struct tinyml_window *w = &p->window;
	const struct tinyml_output to =
		tinyml_output(p->round_once, p->out_zero, p->out_min, p->out_max);
	const int32_t row = w->kernel_w * w->in_c, out_line = w->out_w * pixel;
	struct conv_few_windows copied = {columns, w->kernel_h * row, row, 0, {y, y, y, y}};
	struct conv_few_windows inside = {
		.step = w->stride_w * w->in_c,
		.line = w->dilation_h * w->in_w * w->in_c,
		.count = WINDOWS,
	};

	TINYML_ASSERT(w->dilation_w == 1 || w->kernel_w == 1);
	for (int32_t n = 0; n < w->batches; n++, x += w->in_h * w->in_w * w->in_c) {
		for (int32_t i = 0; i < w->out_h; i++, y += out_line) {
			const int32_t top = i * w->stride_h - w->pad_top;
			const struct conv_few_span some = conv_few_inside(w, top);

			for (int32_t j = some.begin; j < some.end; j += WINDOWS) {
				const int32_t at = j > some.end - WINDOWS ? some.end - WINDOWS : j;

				inside.first = &x[(top * w->in_w - w->pad_left) * w->in_c +
						  at * inside.step];
				for (int32_t k = 0; k < WINDOWS; k++) {
					inside.outputs[k] = &y[(at + k) * pixel];
				}
				conv_few_outputs(p, &inside, &to);
			}
			for (int32_t j = 0; j < w->out_w; j++) {
				if (j == some.begin) {
					j = some.end;
					if (j == w->out_w) {
						break;
					}
				}
				conv_few_copy(p, x, top, j * w->stride_w - w->pad_left,
					      &columns[copied.count * copied.step]);
				copied.outputs[copied.count] = &y[j * pixel];
				copied.count++;
				if (copied.count == WINDOWS) {
					conv_few_outputs(p, &copied, &to);
					copied.count = 0;
				}
			}
		}
	}
	if (copied.count > 0) { /* beside columns of windows before, or whatever is there */
		conv_few_outputs(p, &copied, &to);
	}
}

#endif /* TINYML_CONV_FEW_S8_H_ */
