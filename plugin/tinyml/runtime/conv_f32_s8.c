/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/byte_weights.h>

/* One filter at one position; x is the first input channel of its group. */
static float accumulate(const struct tinyml_conv_f32_s8 *p, const float *x, const int8_t *filter,
			struct tinyml_span rows, struct tinyml_span cols)
{
	const struct tinyml_window *w = &p->window;
	float sum = 0.0f;

	for (int32_t ky = rows.first; ky < rows.end; ky++) {
		const int32_t iy = rows.start + ky * w->dilation_h;

		for (int32_t kx = cols.first; kx < cols.end; kx++) {
			const int32_t ix = cols.start + kx * w->dilation_w;
			const float *in = &x[(iy * w->in_w + ix) * w->in_c];
			const int8_t *k = &filter[(ky * w->kernel_w + kx) * p->group_in];

			sum = tinyml_dot_f32_s8(in, k, p->group_in, sum);
		}
	}
	return sum;
}

void tinyml_conv_f32_s8(const struct tinyml_conv_f32_s8 *p, const float *x, float *y)
{
	const struct tinyml_window *w = &p->window;
	const int32_t filter_size = w->kernel_h * w->kernel_w * p->group_in;

	for (int32_t n = 0; n < w->batches; n++) {
		for (int32_t o = 0; o < w->out_h * w->out_w; o++) {
			const struct tinyml_span rows =
				tinyml_span(o / w->out_w, w->stride_h, w->pad_top, w->kernel_h,
					    w->dilation_h, w->in_h);
			const struct tinyml_span cols =
				tinyml_span(o % w->out_w, w->stride_w, w->pad_left, w->kernel_w,
					    w->dilation_w, w->in_w);

			for (int32_t oc = 0; oc < w->out_c; oc++) {
				const float *group = &x[oc / p->group_out * p->group_in];
				const int8_t *filter = &p->weights[oc * filter_size];
				float v = accumulate(p, group, filter, rows, cols) * p->scales[oc];

				v += p->bias != NULL ? p->bias[oc] : 0.0f;
				*y++ = v < p->out_min   ? p->out_min
				       : v > p->out_max ? p->out_max
							: v;
			}
		}
		x += w->in_h * w->in_w * w->in_c;
	}
}
