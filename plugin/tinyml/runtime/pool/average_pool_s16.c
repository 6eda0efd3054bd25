/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Means of int16, whose quotients are exact: eight channels at a time. */

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
struct average_pool_s16_view {
	int32_t height, width;
	int32_t row_step, step;
};

#if TINYML_CORE_MVE

static inline void average_pool_s16_sums(const int16_t *x, const struct average_pool_s16_view *view,
					 int32_t sums[CHANNELS])
{
	int32x4_t low = vdupq_n_s32(0), high = vdupq_n_s32(0);

	for (int32_t i = view->height; i > 0; i--, x += view->row_step) {
		const int16_t *at = x;

		for (int32_t j = view->width; j > 0; j--, at += view->step) {
			low = vaddq_s32(low, vldrhq_s32(at));
			high = vaddq_s32(high, vldrhq_s32(at + 4));
		}
	}
	vst1q_s32(sums, low);
	vst1q_s32(sums + 4, high);
}

#else

/* Two elements in a word, one of them to each sum. */
#define ADD(a, b, word)                                                                            \
	do {                                                                                       \
		const uint32_t two = (word);                                                       \
		(a) += (int16_t)two;                                                               \
		(b) += (int32_t)two >> 16;                                                         \
	} while (false)

static inline void average_pool_s16_sums(const int16_t *x, const struct average_pool_s16_view *view,
					 int32_t sums[CHANNELS])
{
	int32_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;

	for (int32_t i = view->height; i > 0; i--, x += view->row_step) {
		const int16_t *at = x;

		for (int32_t j = view->width; j > 0; j--, at += view->step) {
			ADD(a, b, tinyml_load_word(at));
			ADD(c, d, tinyml_load_word(at + 2));
			ADD(e, f, tinyml_load_word(at + 4));
			ADD(g, h, tinyml_load_word(at + 6));
		}
	}
	sums[0] = a;
	sums[1] = b;
	sums[2] = c;
	sums[3] = d;
	sums[4] = e;
	sums[5] = f;
	sums[6] = g;
	sums[7] = h;
}

#endif /* TINYML_CORE_MVE */

static int32_t average_pool_s16_mean(int32_t sum, int32_t count, bool to_even)
{
	if (to_even) {
		return tinyml_divide_to_even(sum, count);
	}
	return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

static void average_pool_s16_position(const struct tinyml_pool_s16 *p, const int16_t *x,
				      const struct average_pool_s16_view *view, int16_t *y)
{
	const int32_t count = view->height * view->width;

	for (int32_t c = 0; c < p->window.in_c; c += CHANNELS, y += CHANNELS) {
		int32_t sums[CHANNELS];

		average_pool_s16_sums(&x[c], view, sums);
		for (int32_t i = 0; i < CHANNELS; i++) {
			const int32_t mean = average_pool_s16_mean(sums[i], count, p->to_even);

			y[i] = (int16_t)tinyml_clamp(mean, p->out_min, p->out_max);
		}
	}
}

void tinyml_average_pool_s16(const struct tinyml_pool_s16 *p, const int16_t *x, int16_t *y)
{
	const struct tinyml_window *w = &p->window;
	const int32_t row_step = w->in_w * w->in_c;

	TINYML_ASSERT(w->in_c % CHANNELS == 0);
	for (int32_t n = 0; n < w->batches; n++, x += w->in_h * row_step) {
		for (int32_t oy = 0; oy < w->out_h; oy++) {
			const struct tinyml_span rows = tinyml_span(
				oy, w->stride_h, w->pad_top, w->kernel_h, w->dilation_h, w->in_h);

			for (int32_t ox = 0; ox < w->out_w; ox++, y += w->out_c) {
				const struct tinyml_span cols =
					tinyml_span(ox, w->stride_w, w->pad_left, w->kernel_w,
						    w->dilation_w, w->in_w);
				struct average_pool_s16_view view = {
					rows.end - rows.first, cols.end - cols.first,
					w->dilation_h * row_step, w->dilation_w * w->in_c};
				const int32_t top = rows.start + rows.first * w->dilation_h;
				const int32_t left = cols.start + cols.first * w->dilation_w;

				if (view.row_step == view.width * view.step) { /* one run */
					view.width *= view.height;
					view.height = 1;
				}
				average_pool_s16_position(p, &x[top * row_step + left * w->in_c],
							  &view, y);
			}
		}
	}
}

#endif /* TINYML_CORE_DSP */
