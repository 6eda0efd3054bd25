/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include "windows_f32.h"

/* Rows, or columns. */
struct windows_f32_axis {
	int32_t in, out, kernel, stride, dilation, pad;
	bool backwards;
};

/* How many outputs from this one on have windows with the same part inside the input, and which. */
static int32_t windows_f32_alike(const struct windows_f32_axis *a, int32_t at,
				 struct tinyml_span *span)
{
	const int32_t reach = (a->kernel - 1) * a->dilation;
	const int32_t left = a->backwards ? at + 1 : a->out - at;
	int32_t before, after, alike;

	*span = tinyml_span(at, a->stride, a->pad, a->kernel, a->dilation, a->in);
	before = span->start;
	after = a->in - 1 - reach - before;
	if (before < 0 || after < 0) {
		return 1;
	}
	alike = 1 + (a->backwards ? before : after) / a->stride;
	return alike < left ? alike : left;
}

/* The first of so many outputs from this one on. */
static int32_t windows_f32_first(const struct windows_f32_axis *a, int32_t at, int32_t count)
{
	return a->backwards ? at - count + 1 : at;
}

/* Whether all outputs of a block can be written before all of its windows are read. They may share
 * memory as far as outputs that are computed one by one, in order, do not need what earlier ones
 * overwrite. x is where the first window begins, y is the first output.
 */
static bool windows_f32_apart(const struct tinyml_windows_f32 *v, int32_t lines, int32_t count,
			      const float *x, const float *y)
{
	const struct tinyml_window *const w = &v->window;
	const int32_t height = (lines - 1) * w->stride_h + (w->kernel_h - 1) * w->dilation_h;
	const int32_t width = (count - 1) * w->stride_w + (w->kernel_w - 1) * w->dilation_w;
	const float *const x_end = &x[(height * w->in_w + width + 1) * w->in_c];
	const float *const y_end = &y[(lines - 1) * v->y_line + count * v->y_step];

	return (uintptr_t)x_end <= (uintptr_t)y || (uintptr_t)y_end <= (uintptr_t)x;
}

/* A block, two windows at a time: one above the other, or neighbours in its last row. x is where
 * the first window begins.
 */
static void windows_f32_compute(struct tinyml_windows_f32 *v, const float *x, float *y,
				int32_t lines, int32_t count)
{
	const struct tinyml_window *const w = &v->window;
	const int32_t step = w->stride_w * w->in_c, down = w->stride_h * w->in_w * w->in_c;
	const bool by_columns = lines / 2 > count;
	const int32_t calls = by_columns ? count : lines / 2, odd = lines - lines % 2;

	v->x_other = down;
	v->y_other = v->y_line;
	v->x_next = by_columns ? 2 * down : step;
	v->y_next = by_columns ? 2 * v->y_line : v->y_step;
	for (int32_t i = 0; i < calls; i++) {
		v->compute(v, &x[i * (by_columns ? step : 2 * down)],
			   &y[i * (by_columns ? v->y_step : 2 * v->y_line)],
			   by_columns ? lines / 2 : count, true);
	}
	if (odd == lines) {
		return;
	}
	x += odd * down;
	y += odd * v->y_line;
	v->x_other = step;
	v->y_other = v->y_step;
	v->x_next = 2 * step;
	v->y_next = 2 * v->y_step;
	if (count > 1) {
		v->compute(v, x, y, count / 2, true);
	}
	if (count % 2 != 0) {
		v->compute(v, &x[(count - 1) * step], &y[(count - 1) * v->y_step], 1, false);
	}
}

/* All columns of the outputs of so many rows, whose windows have the same rows inside the input. x
 * is the row of the image in which the first window begins, padding included.
 */
static void windows_f32_rows(struct tinyml_windows_f32 *v, const struct windows_f32_axis *columns,
			     struct tinyml_span rows, const float *x, float *y, int32_t lines)
{
	const struct tinyml_window *const w = &v->window;
	int32_t count;

	for (int32_t done = 0; done < w->out_w; done += count) {
		const int32_t at = columns->backwards ? w->out_w - 1 - done : done;
		struct tinyml_span cols;
		const float *from;
		int32_t first;

		count = windows_f32_alike(columns, at, &cols);
		for (;; count -= count / 2) {
			first = windows_f32_first(columns, at, count);
			from = &x[(first * w->stride_w - w->pad_left) * w->in_c];
			if (lines > 1 || count == 1 ||
			    windows_f32_apart(v, 1, count, from, &y[first * v->y_step])) {
				break;
			}
		}
		v->taps = rows.end > rows.first ? cols.end - cols.first : 0;
		v->rows = v->taps > 0 ? rows.end - rows.first : 0;
		v->first = rows.first * w->kernel_w + cols.first;
		from += v->rows > 0 ? rows.first * v->line + cols.first * v->tap : 0;
		windows_f32_compute(v, from, &y[first * v->y_step], lines, count);
	}
}

/* Windows of one element that touch each other are one row, whatever the form of the image. */
static void windows_f32_in_one_row(struct tinyml_window *w)
{
	const int32_t positions = w->batches * w->out_h * w->out_w;

	if (w->kernel_h * w->kernel_w == 1 && w->stride_h * w->stride_w == 1 &&
	    w->in_h == w->out_h && w->in_w == w->out_w && w->pad_top == 0 && w->pad_left == 0 &&
	    positions <= INT16_MAX) {
		w->out_w = (int16_t)positions;
		w->in_w = (int16_t)positions;
		w->batches = 1;
		w->in_h = 1;
		w->out_h = 1;
	}
}

void tinyml_windows_f32(struct tinyml_windows_f32 *v, const float *x, float *y)
{
	struct tinyml_window *const w = &v->window;
	struct windows_f32_axis rows, columns;
	int32_t lines;

	if (v->y_step == 0) {
		windows_f32_in_one_row(w);
		v->y_step = w->out_c;
		v->y_line = w->out_w * w->out_c;
	}
	v->line = w->dilation_h * w->in_w * w->in_c;
	v->tap = w->dilation_w * w->in_c;
	rows = (struct windows_f32_axis){w->in_h,       w->out_h,   w->kernel_h,    w->stride_h,
					 w->dilation_h, w->pad_top, v->from_the_end};
	columns = (struct windows_f32_axis){w->in_w,       w->out_w,    w->kernel_w,    w->stride_w,
					    w->dilation_w, w->pad_left, v->from_the_end};
	for (int32_t i = 0; i < w->batches; i++) {
		const int32_t item = v->from_the_end ? w->batches - 1 - i : i;
		const float *const image = &x[item * w->in_h * w->in_w * w->in_c];
		float *const outputs = &y[item * w->out_h * v->y_line];

		for (int32_t done = 0; done < w->out_h; done += lines) {
			const int32_t at = v->from_the_end ? w->out_h - 1 - done : done;
			struct tinyml_span span;
			const float *from;
			int32_t first;

			lines = windows_f32_alike(&rows, at, &span);
			for (;; lines -= lines / 2) {
				first = windows_f32_first(&rows, at, lines);
				from = &image[(first * w->stride_h - w->pad_top) * w->in_w *
					      w->in_c];
				if (lines == 1 || windows_f32_apart(v, lines, w->out_w,
								    from - w->pad_left * w->in_c,
								    &outputs[first * v->y_line])) {
					break;
				}
			}
			windows_f32_rows(v, &columns, span, from, &outputs[first * v->y_line],
					 lines);
		}
	}
}
