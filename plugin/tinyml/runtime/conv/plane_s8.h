/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * One channel of an input, copied into a plane with its padding: windows stay inside it, the
 * elements of a row are adjacent, and the outputs of the channel can be written over its inputs.
 */

#ifndef TINYML_PLANE_S8_H_
#define TINYML_PLANE_S8_H_

#include <stddef.h>
#include <string.h>

#include <tinyml/depthwise_conv.h>
#include <tinyml/tinyml.h>

struct tinyml_plane {
	int8_t *at;
	int32_t height; /* as far as windows reach */
	int32_t width;
	int32_t x_step; /* from one element of a row of the input to the next, in bytes */
	int32_t x_line; /* from one row to the next */
	int32_t y_step; /* the same for the output */
	int32_t y_line;
};

/** A plane filled with padding. */
static inline struct tinyml_plane tinyml_plane(const struct tinyml_depthwise_conv_s8 *p,
					       void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const bool turned = p->transposed;
	const struct tinyml_plane plane = {
		.at = scratch,
		.height = (w->kernel_h - 1) * w->dilation_h + (w->out_h - 1) * w->stride_h + 1,
		.width = (w->kernel_w - 1) * w->dilation_w + (w->out_w - 1) * w->stride_w + 1,
		.x_step = turned ? w->in_h * w->in_c : w->in_c,
		.x_line = turned ? w->in_c : w->in_w * w->in_c,
		.y_step = turned ? w->out_h * w->out_c : w->out_c,
		.y_line = turned ? w->out_c : w->out_w * w->out_c,
	};

	TINYML_ASSERT(w->out_c % w->in_c == 0 && plane.height > 0 && plane.width > 0);
	memset(plane.at, p->in_zero, (size_t)(plane.height * plane.width));
	return plane;
}

static inline int32_t tinyml_plane_min(int32_t a, int32_t b)
{
	return a < b ? a : b;
}

/** Copy the channel that starts at x into a plane. */
static inline void tinyml_plane_fill(const struct tinyml_plane *plane,
				     const struct tinyml_window *w, const int8_t *x)
{
	const int32_t rows = tinyml_plane_min(w->in_h, plane->height - w->pad_top);
	const int32_t cols = tinyml_plane_min(w->in_w, plane->width - w->pad_left);
	const int32_t step = plane->x_step, line = plane->x_line;
	int8_t *to = &plane->at[w->pad_top * plane->width + w->pad_left];

	for (int32_t row = 0; row < rows; row++, x += line, to += plane->width) {
		const int8_t *from = x;
		int8_t *next = to, *end = to + cols;

		for (; end - next >= 4; next += 4, from += 4 * step) {
			next[0] = from[0];
			next[1] = from[step];
			next[2] = from[2 * step];
			next[3] = from[3 * step];
		}
		for (; next < end; from += step) {
			*next++ = *from;
		}
	}
}

#endif /* TINYML_PLANE_S8_H_ */
