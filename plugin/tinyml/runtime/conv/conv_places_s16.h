/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * The positions of a convolution with int16 activations, one after the other: their windows, and
 * where their outputs go.
 */

#ifndef TINYML_CONV_PLACES_S16_H_
#define TINYML_CONV_PLACES_S16_H_

#include <stdbool.h>
#include <stdint.h>

#include <tinyml/conv_s16.h>

#include "window_s16.h"

/** Where the next position is: its window and its outputs. */
struct conv_places_s16 {
	const int16_t *x; /* the image, from the first channel of the group on */
	int16_t *y;
	int32_t row;
	int32_t col;
	int32_t step;     /* elements of the output from a position to the next */
	int32_t to_line;  /* and from what follows a line to the next line */
	int32_t to_image; /* and from what follows an image to the next one */
};

/** The first position of an image. */
static inline struct conv_places_s16 conv_places_s16(const struct tinyml_window *w,
						     const int16_t *x, int16_t *y,
						     const struct tinyml_steps_s16 *steps)
{
	return (struct conv_places_s16){
		.x = x,
		.y = y,
		.step = steps->step,
		.to_line = steps->line - w->out_w * steps->step,
		.to_image = steps->image - w->out_h * steps->line,
	};
}

/** The steps of outputs that are neighbours. */
static inline struct tinyml_steps_s16 conv_places_s16_neighbours(const struct tinyml_window *w)
{
	const int32_t line = w->out_w * w->out_c;

	return (struct tinyml_steps_s16){w->out_c, line, w->out_h * line};
}

/** Go on to the next position. */
static inline void conv_places_s16_next(const struct tinyml_window *w, struct conv_places_s16 *at)
{
	at->y += at->step;
	at->col++;
	if (at->col == w->out_w) {
		at->col = 0;
		at->y += at->to_line;
		at->row++;
		if (at->row == w->out_h) {
			at->row = 0;
			at->y += at->to_image;
			at->x += w->in_h * w->in_w * w->in_c;
		}
	}
}

/** Whether the window at (top, left) is inside the input. */
static inline bool conv_places_s16_inside(const struct tinyml_window *w, int32_t top, int32_t left)
{
	return top >= 0 && left >= 0 && top + (w->kernel_h - 1) * w->dilation_h < w->in_h &&
	       left + (w->kernel_w - 1) * w->dilation_w < w->in_w;
}

/** The part of the window at (top, left) that is inside the input. */
struct conv_places_s16_part {
	struct tinyml_taps_s16 rows;
	struct tinyml_taps_s16 cols;
	const int16_t *x; /* its first element, if it has one */
};

__attribute__((noinline, unused)) static void
conv_places_s16_find(const struct tinyml_window *w, const int16_t *x, int32_t top, int32_t left,
		     struct conv_places_s16_part *part)
{
	part->rows = tinyml_taps_s16(top, w->kernel_h, w->dilation_h, w->in_h);
	part->cols = tinyml_taps_s16(left, w->kernel_w, w->dilation_w, w->in_w);
	top += part->rows.first * w->dilation_h;
	left += part->cols.first * w->dilation_w;
	part->x = &x[(top * w->in_w + left) * w->in_c];
}

#endif /* TINYML_CONV_PLACES_S16_H_ */
