/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

/* Copy the input that a filter covers at one position, in the order of its weights; zeros outside.
 */
static void conv_s16_gather_window(const struct tinyml_window *w, const int16_t *x,
				   struct tinyml_span rows, struct tinyml_span cols,
				   int32_t channels, int16_t *column)
{
	for (int32_t ky = 0; ky < w->kernel_h; ky++) {
		const int32_t row = (rows.start + ky * w->dilation_h) * w->in_w;
		const bool row_inside = ky >= rows.first && ky < rows.end;

		for (int32_t kx = 0; kx < w->kernel_w; kx++) {
			const int32_t at = (row + cols.start + kx * w->dilation_w) * w->in_c;
			const bool inside = row_inside && kx >= cols.first && kx < cols.end;

			for (int32_t c = 0; c < channels; c++) {
				*column++ = inside ? x[at + c] : 0;
			}
		}
	}
}

static int16_t conv_s16_sum_up(const struct tinyml_conv_s16 *p, int32_t oc, const int16_t *column,
			       const int8_t *filter, int32_t length)
{
	const int64_t bias = p->bias != NULL ? p->bias[oc] : 0;
	const int64_t sum = tinyml_add_products_s16(bias, column, filter, length);

	return p->round_once ? tinyml_narrow_s64_once(sum, p->multiplier[oc], p->shift[oc],
						      p->out_min, p->out_max)
			     : tinyml_narrow_s64(sum, p->multiplier[oc], p->shift[oc], p->out_min,
						 p->out_max);
}

/* All output channels of one position. */
static void conv_s16_convolve_position(const struct tinyml_conv_s16 *p, const int16_t *x,
				       int16_t *y, struct tinyml_span rows, struct tinyml_span cols,
				       int16_t *column)
{
	const struct tinyml_window *w = &p->window;
	const int32_t group_in = w->in_c / p->groups;
	const int32_t group_out = w->out_c / p->groups;
	const int32_t length = w->kernel_h * w->kernel_w * group_in;
	const int8_t *filter = p->weights;

	for (int32_t oc = 0; oc < w->out_c; oc++) {
		if (oc % group_out == 0) {
			conv_s16_gather_window(w, &x[oc / group_out * group_in], rows, cols,
					       group_in, column);
		}
		y[oc] = conv_s16_sum_up(p, oc, column, filter, length);
		filter += length;
	}
}

static void conv_s16_positions(const struct tinyml_conv_s16 *p, const int16_t *x, int16_t *y,
			       int32_t step, int16_t *column)
{
	const struct tinyml_window *w = &p->window;

	for (int32_t o = 0; o < w->out_h * w->out_w; o++, y += step) {
		conv_s16_convolve_position(p, x, y,
					   tinyml_span(o / w->out_w, w->stride_h, w->pad_top,
						       w->kernel_h, w->dilation_h, w->in_h),
					   tinyml_span(o % w->out_w, w->stride_w, w->pad_left,
						       w->kernel_w, w->dilation_w, w->in_w),
					   column);
	}
}

/* Channel by channel, each copied first: as convolutions from one channel to one. */
static void conv_s16_channels(const struct tinyml_conv_s16 *p, const int16_t *x, int16_t *y,
			      int16_t *column)
{
	const int32_t channels = p->window.in_c, size = p->window.in_h * p->window.in_w;
	const int32_t taps = p->window.kernel_h * p->window.kernel_w;
	struct tinyml_conv_s16 one = *p;

	one.groups = 1;
	one.window.in_c = 1;
	one.window.out_c = 1;
	for (int32_t c = 0; c < channels; c++) {
		for (int32_t i = 0; i < size; i++) {
			column[taps + i] = x[i * channels + c];
		}
		conv_s16_positions(&one, &column[taps], &y[c], channels, column);
		one.weights += taps;
		one.bias += one.bias != NULL ? 1 : 0;
		one.multiplier++;
		one.shift++;
	}
}

void tinyml_conv_s16(const struct tinyml_conv_s16 *p, const int16_t *x, int16_t *y, void *scratch)
{
	const struct tinyml_window *w = &p->window;

	TINYML_ASSERT(p->groups == 0 ? w->in_c == w->out_c
				     : w->in_c % p->groups == 0 && w->out_c % p->groups == 0);
	TINYML_ASSERT(TINYML_ALIGNED(scratch, sizeof(int16_t)));
	for (int32_t n = 0; n < w->batches; n++) {
		if (p->groups == 0) {
			conv_s16_channels(p, x, y, scratch);
		} else {
			conv_s16_positions(p, x, y, w->out_c, scratch);
		}
		x += w->in_h * w->in_w * w->in_c;
		y += w->out_h * w->out_w * w->out_c;
	}
}
