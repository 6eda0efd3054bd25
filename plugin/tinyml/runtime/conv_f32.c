/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/conv.h>

/* The dot product of a filter and the window at one output position. */
static float accumulate(const struct tinyml_window *w, const float *x, const float *filter,
			struct tinyml_span rows, struct tinyml_span cols, int32_t group_c)
{
	float acc = 0.0f;

	for (int32_t ky = rows.first; ky < rows.end; ky++) {
		const int32_t iy = rows.start + ky * w->dilation_h;

		for (int32_t kx = cols.first; kx < cols.end; kx++) {
			const int32_t ix = cols.start + kx * w->dilation_w;
			const float *in = &x[(iy * w->in_w + ix) * w->in_c];
			const float *k = &filter[(ky * w->kernel_w + kx) * group_c];

			for (int32_t c = 0; c < group_c; c++) {
				acc += in[c] * k[c];
			}
		}
	}
	return acc;
}

void tinyml_conv_f32(const struct tinyml_conv_f32 *p, const float *x, float *y)
{
	const struct tinyml_window *w = &p->window;
	const int32_t group_c = w->in_c / p->groups;
	const int32_t group_out = w->out_c / p->groups;
	const int32_t filter_size = w->kernel_h * w->kernel_w * group_c;

	for (int32_t n = 0; n < w->batches; n++) {
		for (int32_t oy = 0; oy < w->out_h; oy++) {
			const struct tinyml_span rows = tinyml_span(
				oy, w->stride_h, w->pad_top, w->kernel_h, w->dilation_h, w->in_h);

			for (int32_t ox = 0; ox < w->out_w; ox++) {
				const struct tinyml_span cols =
					tinyml_span(ox, w->stride_w, w->pad_left, w->kernel_w,
						    w->dilation_w, w->in_w);

				for (int32_t oc = 0; oc < w->out_c; oc++) {
					const float *group = &x[(oc / group_out) * group_c];
					float acc =
						accumulate(w, group, &p->weights[oc * filter_size],
							   rows, cols, group_c);

					acc += p->bias != NULL ? p->bias[oc] : 0.0f;
					acc = acc < p->out_min ? p->out_min : acc;
					*y++ = acc > p->out_max ? p->out_max : acc;
				}
			}
		}
		x += w->in_h * w->in_w * w->in_c;
	}
}
