/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Copies of windows of int16 elements, in the order of weights, with zeros for padding. The file
 * that includes this has tinyml_copy_runs_s16().
 */

#ifndef TINYML_WINDOW_S16_H_
#define TINYML_WINDOW_S16_H_

#include <string.h>

#include <tinyml/conv.h>

/** The taps of an axis that lie inside the input, for a window that begins at `start`. */
struct tinyml_taps_s16 {
	int32_t first;
	int32_t count; /* 0 or less: none */
};

static inline struct tinyml_taps_s16 tinyml_taps_s16(int32_t start, int32_t taps, int32_t dilation,
						     int32_t size)
{
	struct tinyml_taps_s16 inside = {0, taps};

	if (start < 0) {
		inside.first = (dilation - 1 - start) / dilation;
	}
	if (start + (taps - 1) * dilation >= size) {
		inside.count = (size - start + dilation - 1) / dilation;
	}
	inside.count -= inside.first;
	return inside;
}

/** The window at (top, left) of the `channels` from x on. */
static inline void tinyml_copy_window_s16(const struct tinyml_window *w, const int16_t *x,
					  int32_t top, int32_t left, int32_t channels, int16_t *to)
{
	const struct tinyml_taps_s16 rows =
		tinyml_taps_s16(top, w->kernel_h, w->dilation_h, w->in_h);
	const struct tinyml_taps_s16 cols =
		tinyml_taps_s16(left, w->kernel_w, w->dilation_w, w->in_w);
	const int32_t line = w->dilation_h * w->in_w * w->in_c, tap = w->dilation_w * w->in_c;
	const int32_t row = w->kernel_w * channels;
	const int16_t *from =
		&x[(top * w->in_w + left) * w->in_c + rows.first * line + cols.first * tap];

	if (rows.count != w->kernel_h || cols.count != w->kernel_w) {
		memset(to, 0, 2 * (size_t)(w->kernel_h * row));
	}
	if (cols.count <= 0) {
		return;
	}
	to += rows.first * row + cols.first * channels;
	if (tap == channels) { /* a row of taps is one run */
		tinyml_copy_runs_s16(to, row, from, line, cols.count * channels, rows.count);
		return;
	}
	for (int32_t ky = rows.count; ky > 0; ky--, to += row, from += line) {
		tinyml_copy_runs_s16(to, channels, from, tap, channels, cols.count);
	}
}

#endif /* TINYML_WINDOW_S16_H_ */
