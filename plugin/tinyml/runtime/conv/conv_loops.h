/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The loops of a float convolution, for one type of weights. The file that includes this defines:
 *
 *   CONV_NAME      the function to define
 *   CONV_PARAMS    its parameters: a struct with window, groups, from_the_end and weights
 *   CONV_WEIGHT    the type of weights
 *
 * and a function finish(params, sum, output channel) that turns a sum into an output element.
 */

#include <tinyml/conv.h>

/* One filter at one position; x is the first input channel of its group. Taps that are adjacent in
 * the input as in the filter are processed as one run.
 */
static float filter_sum(const struct tinyml_window *w, const float *x, const CONV_WEIGHT *filter,
			struct tinyml_span rows, struct tinyml_span cols, int32_t group_in)
{
	const bool one_run = w->dilation_w == 1 && group_in == w->in_c;
	const int32_t taps = one_run ? cols.end - cols.first : 1;
	float sum = 0.0f;

	for (int32_t ky = rows.first; ky < rows.end; ky++) {
		const int32_t iy = rows.start + ky * w->dilation_h;

		for (int32_t kx = cols.first; kx < cols.end; kx += taps) {
			const int32_t ix = cols.start + kx * w->dilation_w;
			const float *in = &x[(iy * w->in_w + ix) * w->in_c];
			const CONV_WEIGHT *k = &filter[(ky * w->kernel_w + kx) * group_in];

			for (int32_t i = 0; i < taps * group_in; i++) {
				sum += in[i] * k[i];
			}
		}
	}
	return sum;
}

/* All filters at one position of one batch item. */
static void convolve_position(const CONV_PARAMS *p, const float *x, float *y, int32_t oy,
			      int32_t ox)
{
	const struct tinyml_window *w = &p->window;
	const int32_t group_in = w->in_c / p->groups;
	const int32_t group_out = w->out_c / p->groups;
	const int32_t filter_size = w->kernel_h * w->kernel_w * group_in;
	const struct tinyml_span rows =
		tinyml_span(oy, w->stride_h, w->pad_top, w->kernel_h, w->dilation_h, w->in_h);
	const struct tinyml_span cols =
		tinyml_span(ox, w->stride_w, w->pad_left, w->kernel_w, w->dilation_w, w->in_w);

	for (int32_t oc = 0; oc < w->out_c; oc++) {
		const float *group = &x[oc / group_out * group_in];
		const CONV_WEIGHT *filter = &p->weights[oc * filter_size];

		y[oc] = finish(p, filter_sum(w, group, filter, rows, cols, group_in), oc);
	}
}

void CONV_NAME(const CONV_PARAMS *p, const float *x, float *y)
{
	const struct tinyml_window *w = &p->window;
	const int32_t positions = w->out_h * w->out_w, all = w->batches * positions;

	for (int32_t i = 0; i < all; i++) {
		const int32_t at = p->from_the_end ? all - 1 - i : i;
		const int32_t item = at / positions, o = at - item * positions, oy = o / w->out_w;

		convolve_position(p, &x[item * w->in_h * w->in_w * w->in_c], &y[at * w->out_c], oy,
				  o - oy * w->out_w);
	}
}
