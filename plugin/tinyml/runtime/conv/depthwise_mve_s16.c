/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise convolutions with int16 activations and Helium: four channels of a position at a time.
 */

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "../weighted/mve_s16.h"

/* All channels at one position, whose taps inside the input are `rows` by `columns`. */
static void depthwise_mve_s16_position(const struct tinyml_conv_dsp_s16 *p, const int16_t *x,
				       const int8_t *weights, int32_t rows, int32_t columns,
				       int16_t *y)
{
	const struct tinyml_window *w = &p->window;
	const int32_t channels = w->in_c, wide = (channels + 3) & ~3;
	const int32_t row_step = w->dilation_h * w->in_w * channels;
	const int32_t tap_step = w->dilation_w * channels;

	for (int32_t c = 0; c < channels; c += 4) {
		const mve_pred16_t some = vctp32q((uint32_t)(channels - c));
		const int16_t *line = &x[c];
		const int8_t *taps = &weights[c];
		int32x4_t sum = vldrwq_z_s32(&p->bias[c], some);

		for (int32_t i = rows; i > 0; i--, line += row_step, taps += w->kernel_w * wide) {
			const int16_t *from = line;
			const int8_t *tap = taps;

			for (int32_t j = columns; j > 0; j--, from += tap_step, tap += wide) {
				sum = vaddq_s32(
					sum, vmulq_s32(vldrhq_z_s32(from, some), vldrbq_s32(tap)));
			}
		}
		sum = tinyml_outputs_mve_s16(
			sum, vldrwq_z_s32(&p->factor[c], some),
			vnegq_s32(vreinterpretq_s32_u32(vldrbq_z_u32(&p->shift[c], some))),
			p->out_min, p->out_max);
		vstrhq_p_s32(&y[c], sum, some);
	}
}

void tinyml_depthwise_mve_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y)
{
	const struct tinyml_window *w = &p->window;
	const int32_t wide = (w->in_c + 3) & ~3, line = w->in_w * w->in_c;

	TINYML_ASSERT(w->in_c == w->out_c);
	for (int32_t n = 0; n < w->batches; n++, x += w->in_h * line) {
		for (int32_t o = 0; o < w->out_h * w->out_w; o++, y += w->out_c) {
			const struct tinyml_span rows =
				tinyml_span(o / w->out_w, w->stride_h, w->pad_top, w->kernel_h,
					    w->dilation_h, w->in_h);
			const struct tinyml_span cols =
				tinyml_span(o % w->out_w, w->stride_w, w->pad_left, w->kernel_w,
					    w->dilation_w, w->in_w);
			const int32_t row = rows.start + rows.first * w->dilation_h;
			const int32_t col = cols.start + cols.first * w->dilation_w;
			const int32_t tap = rows.first * w->kernel_w + cols.first;

			depthwise_mve_s16_position(p, &x[row * line + col * w->in_c],
						   &p->weights[tap * wide], rows.end - rows.first,
						   cols.end - cols.first, y);
		}
	}
}

#endif /* TINYML_CORE_MVE */
