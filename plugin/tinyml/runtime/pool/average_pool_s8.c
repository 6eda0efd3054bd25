/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/fixed_point.h>
#include <tinyml/pool.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#define CHANNELS 8 /* at a time */

#if TINYML_CORE_MVE
#include <arm_mve.h>
#else
#include "../weighted/dsp_s8.h"
#endif

/* The part of the input under a window: `height` rows of `width` positions of eight channels. */
struct view {
	int32_t height, width;
	int32_t row_step, step; /* in bytes */
};

/* sums[i] = sum of channel i. */
static inline void average_pool_s8_sum_window(const int8_t *x, const struct view *view,
					      int16_t sums[CHANNELS])
{
#if TINYML_CORE_MVE
	int16x8_t sum = vdupq_n_s16(0);

	for (int32_t i = 0; i < view->height; i++, x += view->row_step) {
		const int8_t *at = x;

		for (int32_t j = 0; j < view->width; j++, at += view->step) {
			sum = vaddq_s16(sum, vldrbq_s16(at));
		}
	}
	vstrhq_s16(sums, sum);
#else
	int16x2_t a = 0, b = 0, c = 0, d = 0; /* channels 0 and 2, 1 and 3, 4 and 6, 5 and 7 */

	for (int32_t i = 0; i < view->height; i++, x += view->row_step) {
		const int8_t *at = x;

		for (int32_t j = 0; j < view->width; j++, at += view->step) {
			const uint32_t low = tinyml_load_word(at), high = tinyml_load_word(&at[4]);

			a = __sadd16(a, tinyml_even_bytes(low));
			b = __sadd16(b, tinyml_odd_bytes(low));
			c = __sadd16(c, tinyml_even_bytes(high));
			d = __sadd16(d, tinyml_odd_bytes(high));
		}
	}

	const int16x2_t pairs[] = {a, b, c, d};

	for (int32_t i = 0; i < 4; i++) {
		int16_t *to = &sums[i / 2 * 4 + i % 2];

		to[0] = (int16_t)pairs[i];
		to[2] = (int16_t)((uint32_t)pairs[i] >> 16);
	}
#endif
}

static void average_pool_s8_position(const struct tinyml_pool_s8 *p, const int8_t *x,
				     const struct view *view, int8_t *y)
{
	int16_t sums[CHANNELS];

	for (int32_t c = 0; c < p->window.in_c; c += CHANNELS, y += CHANNELS) {
		average_pool_s8_sum_window(&x[c], view, sums);
		for (int32_t i = 0; i < CHANNELS; i++) {
			const int32_t mean = (sums[i] * p->factor + p->offset) >> p->shift;

			y[i] = (int8_t)tinyml_clamp(mean, p->out_min, p->out_max);
		}
	}
}

void tinyml_average_pool_s8(const struct tinyml_pool_s8 *p, const int8_t *x, int8_t *y)
{
	const struct tinyml_window *w = &p->window;
	const int32_t row_step = w->in_w * w->in_c;

	for (int32_t n = 0; n < w->batches; n++, x += w->in_h * row_step) {
		for (int32_t oy = 0; oy < w->out_h; oy++) {
			const struct tinyml_span rows = tinyml_span(
				oy, w->stride_h, w->pad_top, w->kernel_h, w->dilation_h, w->in_h);

			for (int32_t ox = 0; ox < w->out_w; ox++, y += w->out_c) {
				const struct tinyml_span cols =
					tinyml_span(ox, w->stride_w, w->pad_left, w->kernel_w,
						    w->dilation_w, w->in_w);
				const struct view view = {
					rows.end - rows.first, cols.end - cols.first,
					w->dilation_h * row_step, w->dilation_w * w->in_c};
				const int32_t top = rows.start + rows.first * w->dilation_h;
				const int32_t left = cols.start + cols.first * w->dilation_w;

				average_pool_s8_position(p, &x[top * row_step + left * w->in_c],
							 &view, y);
			}
		}
	}
}

#endif /* TINYML_CORE_DSP */
