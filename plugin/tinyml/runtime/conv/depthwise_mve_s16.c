/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise convolutions with int16 activations and Helium: eight channels of a position at a time,
 * then four. */

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "../weighted/mve_s16.h"

/* The taps of a window that lie inside the input. */
struct depthwise_mve_s16_taps {
	int32_t rows;
	int32_t columns;
	int32_t row_step; /* elements of the input from a row of taps to the next */
	int32_t tap_step; /* from a tap to the next */
	int32_t row_wide; /* the same for weights */
	int32_t wide;
};

/* Eight channels at a time, as many as there are. Returns the number of channels. */
static int32_t depthwise_mve_s16_eights(const struct tinyml_conv_dsp_s16 *p,
					const struct depthwise_mve_s16_taps *t, const int16_t *x,
					const int8_t *weights, int16_t *y)
{
	int32_t c = 0;

	for (; c + 8 <= p->window.in_c; c += 8) {
		const int16_t *line = &x[c];
		const int8_t *taps = &weights[c];
		const int32x4x2_t bias = vld2q_s32(&p->bias[c]);
		int32x4_t even = bias.val[0], odd = bias.val[1];
		int32x4x2_t factor;
		int16x8_t shift, out;

		for (int32_t i = t->rows; i > 0; i--, line += t->row_step, taps += t->row_wide) {
			const int16_t *from = line;
			const int8_t *tap = taps;

			for (int32_t j = t->columns; j > 0; j--) {
				const int16x8_t a = vld1q_s16(from), b = vldrbq_s16(tap);

				even = vaddq_s32(even, vmullbq_int_s16(a, b));
				odd = vaddq_s32(odd, vmulltq_int_s16(a, b));
				from += t->tap_step;
				tap += t->wide;
			}
		}
		factor = vld2q_s32(&p->factor[c]);
		shift = vnegq_s16(vreinterpretq_s16_u16(vldrbq_u16(&p->shift[c])));
		even = vrshlq_s32(vmulhq_s32(even, factor.val[0]), vmovlbq_s16(shift));
		odd = vrshlq_s32(vmulhq_s32(odd, factor.val[1]), vmovltq_s16(shift));
		out = vqmovntq_s32(vqmovnbq_s32(vreinterpretq_s16_s32(even), even), odd);
		out = vmaxq_s16(out, vdupq_n_s16(p->out_min));
		vst1q_s16(&y[c], vminq_s16(out, vdupq_n_s16(p->out_max)));
	}
	return c;
}

/* The channels from `c` on, four at a time. */
static void depthwise_mve_s16_fours(const struct tinyml_conv_dsp_s16 *p,
				    const struct depthwise_mve_s16_taps *t, const int16_t *x,
				    const int8_t *weights, int32_t c, int16_t *y)
{
	for (; c < p->window.in_c; c += 4) {
		const mve_pred16_t some = vctp32q((uint32_t)(p->window.in_c - c));
		const int16_t *line = &x[c];
		const int8_t *taps = &weights[c];
		int32x4_t sum = vldrwq_z_s32(&p->bias[c], some);

		for (int32_t i = t->rows; i > 0; i--, line += t->row_step, taps += t->row_wide) {
			const int16_t *from = line;
			const int8_t *tap = taps;

			for (int32_t j = t->columns; j > 0; j--) {
				sum = vaddq_s32(
					sum, vmulq_s32(vldrhq_z_s32(from, some), vldrbq_s32(tap)));
				from += t->tap_step;
				tap += t->wide;
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
	struct depthwise_mve_s16_taps taps = {
		.row_step = w->dilation_h * line,
		.tap_step = w->dilation_w * w->in_c,
		.row_wide = w->kernel_w * wide,
		.wide = wide,
	};

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

			const int16_t *from = &x[row * line + col * w->in_c];
			const int8_t *weights = &p->weights[tap * wide];
			int32_t done;

			taps.rows = rows.end - rows.first;
			taps.columns = cols.end - cols.first;
			done = depthwise_mve_s16_eights(p, &taps, from, weights, y);
			depthwise_mve_s16_fours(p, &taps, from, weights, done, y);
		}
	}
}

#endif /* TINYML_CORE_MVE */
