/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise convolutions with int16 activations and DSP instructions: four channels of two
 * neighbouring positions at a time. */

#include <string.h>

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include "../weighted/dsp_s16.h"

/* The taps of a window that lie inside the input. */
struct depthwise_dsp_s16_taps {
	int32_t rows;
	int32_t columns;
	int32_t row_step; /* elements of the input from a row of taps to the next */
	int32_t tap_step; /* from a tap to the next */
	int32_t row_words;
	int32_t tap_words;
};

/* Four elements, of which `count` may be read. */
static inline void depthwise_dsp_s16_load(const int16_t *from, int32_t count, uint32_t *two)
{
	if (count >= 4) {
		two[0] = tinyml_load_word(from);
		two[1] = tinyml_load_word(from + 2);
	} else {
		two[0] = 0;
		two[1] = 0;
		memcpy(two, from, 2 * (size_t)count);
	}
}

/* One tap: channels 0 and 2 of the weights are in `even`, 1 and 3 in `odd`. */
#define PRODUCTS(sums, two)                                                                        \
	do {                                                                                       \
		(sums)[0] = __smlabb((int32_t)even, (int32_t)(two)[0], (sums)[0]);                 \
		(sums)[1] = __smlabt((int32_t)odd, (int32_t)(two)[0], (sums)[1]);                  \
		(sums)[2] = __smlatb((int32_t)even, (int32_t)(two)[1], (sums)[2]);                 \
		(sums)[3] = __smlatt((int32_t)odd, (int32_t)(two)[1], (sums)[3]);                  \
	} while (false)

/* Four channels at positions `a` and, `apart` elements further on in the input, its neighbour,
 * unless that is 0. */
static inline __attribute__((always_inline)) void
depthwise_dsp_s16_dot(const struct depthwise_dsp_s16_taps *t, const int16_t *a, int32_t apart,
		      const uint32_t *w, int32_t count, int32_t *sums)
{
	int32_t first[4], second[4];

	memcpy(first, sums, sizeof(first));
	memcpy(second, sums, sizeof(second));
	for (int32_t rows = t->rows; rows > 0; rows--, a += t->row_step, w += t->row_words) {
		const int16_t *from = a;
		const uint32_t *weights = w;

		for (int32_t columns = t->columns; columns > 0; columns--) {
			const uint32_t word = *weights;
			const int16x2_t even = tinyml_even_bytes(word),
					odd = tinyml_odd_bytes(word);
			uint32_t two[2];

			depthwise_dsp_s16_load(from, count, two);
			PRODUCTS(first, two);
			if (apart != 0) {
				depthwise_dsp_s16_load(from + apart, count, two);
				PRODUCTS(second, two);
			}
			from += t->tap_step;
			weights += t->tap_words;
		}
	}
	memcpy(sums, first, sizeof(first));
	memcpy(&sums[4], second, sizeof(second));
}

/* All channels at one position, or at two if `apart` is not 0. */
static void depthwise_dsp_s16_position(const struct tinyml_conv_dsp_s16 *p,
				       const struct depthwise_dsp_s16_taps *t, const int16_t *x,
				       int32_t apart, const uint32_t *w, int16_t *y)
{
	const int32_t channels = p->window.in_c, low = p->out_min, high = p->out_max;

	for (int32_t c = 0; c < channels; c += 4, x += 4, w++) {
		const int32_t left = channels - c, count = left < 4 ? left : 4;
		int32_t sums[8];

		for (int32_t i = 0; i < 4; i++) {
			sums[i] = i < count ? p->bias[c + i] : 0;
		}
		if (count == 4 && apart == 0) {
			depthwise_dsp_s16_dot(t, x, 0, w, 4, sums);
		} else if (count == 4) {
			depthwise_dsp_s16_dot(t, x, apart, w, 4, sums);
		} else {
			depthwise_dsp_s16_dot(t, x, apart, w, count, sums);
		}
		for (int32_t i = 0; i < count; i++, y++) {
			const int32_t factor = p->factor[c + i], shift = p->shift[c + i];

			if (apart != 0) {
				y[channels] =
					tinyml_output_s16(sums[4 + i], factor, shift, low, high);
			}
			*y = tinyml_output_s16(sums[i], factor, shift, low, high);
		}
	}
}

void tinyml_depthwise_dsp_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y)
{
	const struct tinyml_window *w = &p->window;
	const int32_t words = (w->in_c + 3) / 4, in_c = w->in_c, line = w->in_w * in_c;

	TINYML_ASSERT(w->in_c == w->out_c && TINYML_ALIGNED(p->weights, 4));
	for (int32_t n = 0; n < w->batches; n++, x += w->in_h * line) {
		for (int32_t oy = 0; oy < w->out_h; oy++) {
			const struct tinyml_span rows = tinyml_span(
				oy, w->stride_h, w->pad_top, w->kernel_h, w->dilation_h, w->in_h);

			for (int32_t ox = 0; ox < w->out_w;) {
				const struct tinyml_span cols =
					tinyml_span(ox, w->stride_w, w->pad_left, w->kernel_w,
						    w->dilation_w, w->in_w);
				const int32_t next = cols.start + w->stride_w;
				/* The neighbour meets the same taps. */
				const bool both =
					ox + 1 < w->out_w && cols.first == 0 &&
					next + (w->kernel_w - 1) * w->dilation_w < w->in_w;
				const struct depthwise_dsp_s16_taps taps = {
					.rows = rows.end - rows.first,
					.columns = cols.end - cols.first,
					.row_step = w->dilation_h * line,
					.tap_step = w->dilation_w * in_c,
					.row_words = w->kernel_w * words,
					.tap_words = words,
				};
				const int32_t row = rows.start + rows.first * w->dilation_h;
				const int32_t col = cols.start + cols.first * w->dilation_w;
				const int32_t tap = rows.first * w->kernel_w + cols.first;

				depthwise_dsp_s16_position(
					p, &taps, &x[row * line + col * in_c],
					both ? w->stride_w * in_c : 0,
					(const uint32_t *)p->weights + tap * words, y);
				ox += 1 + both;
				y += (1 + both) * in_c;
			}
		}
	}
}

#endif /* TINYML_CORE_DSP */
