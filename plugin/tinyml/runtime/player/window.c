/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "window.h"

uint32_t tinyml_check_image(int32_t batches, int32_t height, int32_t width, int32_t channels)
{
	const uint32_t plane = tinyml_check_times((uint32_t)height, (uint32_t)width);

	return tinyml_check_times(tinyml_check_times((uint32_t)batches, (uint32_t)channels), plane);
}

/* One axis: what windows reach stays below the largest int16. Some may be outside the input. */
static bool window_fits(int32_t in, int32_t out, int32_t stride, int32_t kernel, int32_t dilation,
			int32_t pad)
{
	return in > 0 && out > 0 && stride > 0 && kernel > 0 && dilation > 0 && pad >= 0 &&
	       tinyml_check_reach(out, stride, kernel, dilation) <= WINDOW_MOST;
}

static bool window_meets(int32_t in, int32_t out, int32_t stride, int32_t kernel, int32_t dilation,
			 int32_t pad)
{
	return pad <= (kernel - 1) * dilation && (out - 1) * stride - pad < in;
}

bool tinyml_check_meets(const struct tinyml_window *w)
{
	return window_meets(w->in_h, w->out_h, w->stride_h, w->kernel_h, w->dilation_h,
			    w->pad_top) &&
	       window_meets(w->in_w, w->out_w, w->stride_w, w->kernel_w, w->dilation_w,
			    w->pad_left);
}

uint32_t tinyml_check_window_s8(struct tinyml_check *check, const struct tinyml_window *w)
{
	return tinyml_check_window(check, w, 1);
}

uint32_t tinyml_check_window(struct tinyml_check *check, const struct tinyml_window *w,
			     uint32_t size)
{
	return tinyml_check_window_between(check, w, size, size);
}

uint32_t tinyml_check_window_between(struct tinyml_check *check, const struct tinyml_window *w,
				     uint32_t in_size, uint32_t out_size)
{
	const uint32_t inputs = tinyml_check_image(w->batches, w->in_h, w->in_w, w->in_c);
	const uint32_t outputs = tinyml_check_image(w->batches, w->out_h, w->out_w, w->out_c);
	const uint32_t strides = tinyml_check_times((uint32_t)w->stride_h, (uint32_t)w->stride_w);

	/* Convolutions compare the product of a kernel's extents and strides with 1, in int32. */
	tinyml_check_that(check, tinyml_check_times(tinyml_check_taps(w), strides) <= INT32_MAX &&
					 w->batches > 0 && w->in_c > 0 && w->out_c > 0 &&
					 window_fits(w->in_h, w->out_h, w->stride_h, w->kernel_h,
						     w->dilation_h, w->pad_top) &&
					 window_fits(w->in_w, w->out_w, w->stride_w, w->kernel_w,
						     w->dilation_w, w->pad_left));
	tinyml_check_reads(check, 0, tinyml_check_times(inputs, in_size), in_size);
	tinyml_check_writes(check, 1, tinyml_check_times(outputs, out_size), out_size);
	return outputs;
}
