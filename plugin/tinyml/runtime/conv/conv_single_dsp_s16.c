/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions with int16 activations and DSP instructions that have one filter: rows of windows
 * are multiplied where they are, because columns would be more work than products.
 */

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include "../weighted/dsp_s16.h"
#include "conv_places_s16.h"

/* The sum of products of so many rows of adjacent elements, which are so far apart. A function of
 * its own, which has few values to keep.
 */
__attribute__((noinline)) static int32_t conv_single_dsp_s16_dot(const int16_t *weights,
								 int32_t row, const int16_t *x,
								 int32_t line, int32_t elements,
								 int32_t rows)
{
	int32_t sum = 0;

	row -= elements & ~1;
	line -= elements & ~1;
	for (; rows > 0; rows--, weights += row, x += line) {
		int32_t left = elements;

#define PRODUCTS(i)                                                                                \
	(sum = __smlad((int16x2_t)tinyml_load_word(weights + (i)),                                 \
		       (int16x2_t)tinyml_load_word(x + (i)), sum))
		for (; left >= 8; left -= 8, weights += 8, x += 8) {
			PRODUCTS(0);
			PRODUCTS(2);
			PRODUCTS(4);
			PRODUCTS(6);
		}
		for (; left >= 2; left -= 2, weights += 2, x += 2) {
			PRODUCTS(0);
		}
#undef PRODUCTS
		if (left > 0) {
			sum += *weights * *x;
		}
	}
	return sum;
}

/* The outputs of a convolution with a single filter: columns would be more work than products. */
static void conv_single_dsp_s16_outputs(const struct tinyml_conv_dsp_s16 *p,
					struct conv_places_s16 *at)
{
	const struct tinyml_window *w = &p->window;
	const int32_t line = w->dilation_h * w->in_w * w->in_c, tap = w->dilation_w * w->in_c;
	const int32_t row = w->kernel_w * w->in_c;
	/* Without a shift, factors are below 2^30. */
	const int32_t factor = p->shift != NULL ? p->factor[0] : 2 * p->factor[0];
	const int32_t shift = p->shift != NULL ? p->shift[0] : 1;

	for (int32_t left_over = w->batches * w->out_h * w->out_w; left_over > 0; left_over--) {
		const int32_t top = at->row * w->stride_h - w->pad_top;
		const int32_t left = at->col * w->stride_w - w->pad_left;
		const int16_t *weights = (const int16_t *)(const void *)p->weights;
		const int16_t *x = &at->x[(top * w->in_w + left) * w->in_c];
		int32_t rows = w->kernel_h, cols = w->kernel_w, sum = p->bias[0];

		if (!conv_places_s16_inside(w, top, left)) {
			struct conv_places_s16_part part;

			conv_places_s16_find(w, at->x, top, left, &part);
			weights += part.rows.first * row + part.cols.first * w->in_c;
			x = part.x;
			rows = part.rows.count;
			cols = part.cols.count;
		}
		if (w->dilation_w == 1) {
			sum += conv_single_dsp_s16_dot(weights, row, x, line, cols * w->in_c, rows);
		} else {
			for (; cols > 0; cols--, weights += w->in_c, x += tap) {
				sum += conv_single_dsp_s16_dot(weights, row, x, line, w->in_c,
							       rows);
			}
		}
		*at->y = tinyml_output_s16(sum, factor, shift, p->out_min, p->out_max);
		conv_places_s16_next(w, at);
	}
}

void tinyml_conv_single_dsp_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y)
{
	const struct tinyml_steps_s16 steps = conv_places_s16_neighbours(&p->window);
	struct conv_places_s16 at = conv_places_s16(&p->window, x, y, &steps);

	conv_single_dsp_s16_outputs(p, &at);
}

void tinyml_conv_apart_single_dsp_s16(const struct tinyml_conv_apart_dsp_s16 *p, const int16_t *x,
				      int16_t *y, void *scratch)
{
	const struct tinyml_steps_s16 steps = {p->step, p->line, p->image};
	struct conv_places_s16 at = conv_places_s16(&p->conv.window, x, y, &steps);

	(void)scratch;
	conv_single_dsp_s16_outputs(&p->conv, &at);
}

#endif /* TINYML_CORE_DSP */
