/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The windows of float pools, for kernels whose vectors hold some of the channels. */

#ifndef TINYML_POOLS_F32_H_
#define TINYML_POOLS_F32_H_

#include <tinyml/pool.h>
#include <tinyml/tinyml.h>

/* A window: `height` rows of `width` positions inside the input. Steps in elements. */
struct pools_f32_view {
	int32_t height, width;
	int32_t row_step, step;
	int32_t channels;
	float low, high;
	float divisor; /* of means */
};

/* All channels of a window, which begins at `x`. Functions of their own: there are registers for
 * what one of them needs, but not for the loops around it, too.
 */
typedef void pools_f32_position(const struct pools_f32_view *view, const float *x, float *y);

static inline void pools_f32_all(const struct tinyml_pool_f32 *p, const float *x, float *y,
				 pools_f32_position *position)
{
	const struct tinyml_window w = p->window;
	const int32_t line = w.in_w * w.in_c;
	const int32_t row_step = w.dilation_h * line, step = w.dilation_w * w.in_c;
	struct pools_f32_view view = {
		.channels = w.in_c, .low = p->out_min, .high = p->out_max, .divisor = p->divisor};

	for (int32_t n = 0; n < w.batches; n++, x += w.in_h * line) {
		for (int32_t oy = 0; oy < w.out_h; oy++) {
			const struct tinyml_span rows = tinyml_span(
				oy, w.stride_h, w.pad_top, w.kernel_h, w.dilation_h, w.in_h);
			const int32_t height = rows.end - rows.first;
			const float *const row =
				&x[(rows.start + rows.first * w.dilation_h) * line];

			for (int32_t ox = 0; ox < w.out_w; ox++, y += w.in_c) {
				const struct tinyml_span cols =
					tinyml_span(ox, w.stride_w, w.pad_left, w.kernel_w,
						    w.dilation_w, w.in_w);
				const int32_t left = cols.start + cols.first * w.dilation_w;

				view.height = height;
				view.width = cols.end - cols.first;
				view.row_step = row_step;
				view.step = step;
				if (p->divisor == 0.0f) {
					view.divisor = (float)(height * view.width);
				}
				/* Evenly spaced positions of several rows are one row. */
				if (view.width == 1) {
					view.width = height;
					view.height = 1;
					view.step = row_step;
				} else if (view.width * step == row_step) {
					view.width *= height;
					view.height = 1;
				}
				position(&view, &row[left * w.in_c], y);
			}
		}
	}
}

#endif /* TINYML_POOLS_F32_H_ */
