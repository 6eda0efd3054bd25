/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>
#include <string.h>

#include <tinyml/half_weights.h>

#include "../weighted/filters_f32.h"
#include "../weighted/sums_f16.h"

/* Windows of a group. Steps in elements. */
struct view {
	struct tinyml_window window;
	int32_t channels;        /* of the group */
	int32_t taps;            /* elements of a row of a window */
	int32_t line, tap;       /* between rows and columns of a window in the input */
	bool straight;           /* the columns of a window are neighbours in the input */
	struct tinyml_span rows; /* those inside the input, and where the first one is */
};

/* The part of a window that is inside the input, as float16; zeros for the rest. */
static __attribute__((noinline)) void conv_f16_take_part(const struct view *v, const float *image,
							 int32_t col, uint16_t *halves)
{
	const struct tinyml_window *const w = &v->window;
	const struct tinyml_span cols =
		tinyml_span(col, w->stride_w, w->pad_left, w->kernel_w, w->dilation_w, w->in_w);
	const int32_t high = v->rows.end - v->rows.first, wide = cols.end - cols.first;
	const float *x;

	if (high < w->kernel_h || wide < w->kernel_w) {
		(void)memset(halves, 0, (size_t)(w->kernel_h * v->taps) * sizeof(*halves));
	}
	if (high <= 0 || wide <= 0) {
		return;
	}
	x = &image[v->rows.start * w->in_w * w->in_c + v->rows.first * v->line +
		   cols.start * w->in_c + cols.first * v->tap];
	halves += v->rows.first * v->taps + cols.first * v->channels;
	if (v->straight) {
		const struct tinyml_runs_f16 runs = {high, wide * v->channels, v->line, v->taps};

		tinyml_runs_f16(&runs, x, halves);
	} else {
		const struct tinyml_runs_f16 runs = {wide, v->channels, v->tap, v->channels};

		for (int32_t i = 0; i < high; i++) {
			tinyml_runs_f16(&runs, &x[i * v->line], &halves[i * v->taps]);
		}
	}
}

/* A group. Two windows are read before the outputs of the first one are written. */
static void conv_f16_group(struct view *v, const struct tinyml_sums_f16 *sums, bool from_the_end,
			   const float *x, float *y, uint16_t *halves)
{
	const struct tinyml_window *const w = &v->window;
	const int32_t other = (sums->count + 1) & ~1, lines = w->batches * w->out_h;
	const struct tinyml_runs_f16 whole = {w->kernel_h, v->taps, v->line, v->taps};
	/* Columns whose windows are inside the input. */
	const int32_t room = w->in_w + w->pad_left - (w->kernel_w - 1) * w->dilation_w - 1;
	const int32_t begin = (w->pad_left + w->stride_w - 1) / w->stride_w;
	const int32_t end = v->straight && room >= 0 ? room / w->stride_w + 1 : 0;
	const int32_t step = from_the_end ? -w->out_c : w->out_c;
	float *before = NULL;

	y += from_the_end ? (lines * w->out_w - 1) * w->out_c : 0;
	for (int32_t i = 0; i < lines; i++) {
		const int32_t line = from_the_end ? lines - 1 - i : i, item = line / w->out_h;
		const float *const image = &x[item * w->in_h * w->in_w * w->in_c];
		const float *row;
		bool all;

		v->rows = tinyml_span(line - item * w->out_h, w->stride_h, w->pad_top, w->kernel_h,
				      w->dilation_h, w->in_h);
		all = v->rows.end - v->rows.first == w->kernel_h;
		row = &image[(v->rows.start * w->in_w - w->pad_left) * w->in_c];
		for (int32_t j = 0; j < w->out_w; j++, y += step) {
			const int32_t col = from_the_end ? w->out_w - 1 - j : j;
			uint16_t *const to = before != NULL ? &halves[other] : halves;

			if (all && col >= begin && col < end) {
				tinyml_runs_f16(&whole, &row[col * w->stride_w * w->in_c], to);
			} else {
				conv_f16_take_part(v, image, col, to);
			}
			if (before != NULL) {
				tinyml_sums_f16(sums, halves, to, before, y);
				before = NULL;
			} else {
				before = y;
			}
		}
	}
	if (before != NULL) {
		tinyml_sums_f16(sums, halves, NULL, before, NULL);
	}
}

static void conv_f16_groups(const struct tinyml_conv_f32_f16 *p, struct tinyml_sums_f16 *sums,
			    const float *x, float *y, uint16_t *halves)
{
	const struct tinyml_window *const w = &p->window;
	const int32_t group_in = w->in_c / p->groups;
	struct view v = {
		.window = *w,
		.channels = group_in,
		.taps = w->kernel_w * group_in,
		.line = w->dilation_h * w->in_w * w->in_c,
		.tap = w->dilation_w * w->in_c,
		.straight = w->kernel_w == 1 || w->dilation_w * w->in_c == group_in,
	};

	for (int32_t i = 0; i < p->groups; i++) {
		conv_f16_group(&v, sums, p->from_the_end, &x[i * group_in], &y[i * sums->filters],
			       halves);
		sums->weights += sums->count * sums->filters;
		sums->bias = sums->bias != NULL ? sums->bias + sums->filters : NULL;
	}
}

void tinyml_conv_f16(const struct tinyml_conv_f32_f16 *p, const float *x, float *y, void *scratch)
{
	const struct tinyml_window *const w = &p->window;
	const int32_t positions = w->batches * w->out_h * w->out_w;
	struct tinyml_sums_f16 sums = {
		.filters = w->out_c / p->groups,
		.count = w->kernel_h * w->kernel_w * (w->in_c / p->groups),
		.weights = p->weights,
		.bias = p->bias,
	};

	if (sums.count == w->in_c && w->kernel_h * w->kernel_w == 1 && w->in_h == w->out_h &&
	    w->in_w == w->out_w && w->stride_h * w->stride_w == 1 && w->pad_top == 0 &&
	    w->pad_left == 0) {
		tinyml_rows_f16(&sums, x, y, positions, p->from_the_end, scratch);
	} else {
		conv_f16_groups(p, &sums, x, y, scratch);
	}
	tinyml_limit_f32(y, positions * w->out_c, p->out_min, p->out_max);
}
