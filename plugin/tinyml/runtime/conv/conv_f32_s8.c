/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/byte_weights.h>

static float conv_f32_s8_finish(const struct tinyml_conv_f32_s8 *p, float sum, int32_t oc)
{
	sum = sum * p->scales[oc] + (p->bias != NULL ? p->bias[oc] : 0.0f);
	sum = sum < p->out_min ? p->out_min : sum;
	return sum > p->out_max ? p->out_max : sum;
}

static inline float conv_f32_s8_run(const float *x, const int8_t *filter, int32_t count, float sum)
{
	for (int32_t i = 0; i < count; i++) {
		sum += x[i] * filter[i];
	}
	return sum;
}

/* One filter at one position; x is the first input channel of the group. Taps that are neighbours
 * in the input, as they are in the filter, are one run of numbers.
 */
static float conv_f32_s8_sum(const struct tinyml_window *w, const float *x, const int8_t *filter,
			     struct tinyml_span rows, struct tinyml_span cols, int32_t group_in)
{
	const bool one_run = w->dilation_w == 1 && group_in == w->in_c;
	const int32_t taps = one_run ? cols.end - cols.first : 1;
	float sum = 0.0f;

	for (int32_t ky = rows.first; ky < rows.end; ky++) {
		const int32_t iy = rows.start + ky * w->dilation_h;

		for (int32_t kx = cols.first; kx < cols.end; kx += taps) {
			const int32_t ix = cols.start + kx * w->dilation_w;

			sum = conv_f32_s8_run(&x[(iy * w->in_w + ix) * w->in_c],
					      &filter[(ky * w->kernel_w + kx) * group_in],
					      taps * group_in, sum);
		}
	}
	return sum;
}

/* All filters at one position of one batch item. */
static void conv_f32_s8_position(const struct tinyml_conv_f32_s8 *p, const float *x, float *y,
				 int32_t oy, int32_t ox)
{
	const struct tinyml_window *w = &p->window;
	const int32_t group_in = w->in_c / p->groups, group_out = w->out_c / p->groups;
	const int32_t filter_size = w->kernel_h * w->kernel_w * group_in;
	const struct tinyml_span rows =
		tinyml_span(oy, w->stride_h, w->pad_top, w->kernel_h, w->dilation_h, w->in_h);
	const struct tinyml_span cols =
		tinyml_span(ox, w->stride_w, w->pad_left, w->kernel_w, w->dilation_w, w->in_w);

	for (int32_t oc = 0; oc < w->out_c; oc++) {
		const float sum =
			conv_f32_s8_sum(w, &x[oc / group_out * group_in],
					&p->weights[oc * filter_size], rows, cols, group_in);

		y[oc] = conv_f32_s8_finish(p, sum, oc);
	}
}

void tinyml_conv_f32_s8(const struct tinyml_conv_f32_s8 *p, const float *x, float *y)
{
	const struct tinyml_window *w = &p->window;
	const int32_t positions = w->out_h * w->out_w, all = w->batches * positions;

	for (int32_t i = 0; i < all; i++) {
		const int32_t at = p->from_the_end ? all - 1 - i : i;
		const int32_t item = at / positions, o = at - item * positions, oy = o / w->out_w;

		conv_f32_s8_position(p, &x[item * w->in_h * w->in_w * w->in_c], &y[at * w->out_c],
				     oy, o - oy * w->out_w);
	}
}
