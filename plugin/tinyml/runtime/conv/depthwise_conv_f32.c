/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/depthwise_conv.h>

/* All output channels of one position. */
static void convolve_position(const struct tinyml_depthwise_conv_f32 *p, const float *x, float *y,
			      struct tinyml_span rows, struct tinyml_span cols)
{
	const struct tinyml_window *w = &p->window;
	const int32_t multiple = w->out_c / w->in_c;

	for (int32_t oc = 0; oc < w->out_c; oc++) {
		const float *channel = &x[oc / multiple];
		float acc = p->bias != NULL ? p->bias[oc] : 0.0f;

		for (int32_t ky = rows.first; ky < rows.end; ky++) {
			const int32_t iy = rows.start + ky * w->dilation_h;

			for (int32_t kx = cols.first; kx < cols.end; kx++) {
				const int32_t ix = cols.start + kx * w->dilation_w;
				const float in = channel[(iy * w->in_w + ix) * w->in_c];
				const float k = p->weights[(ky * w->kernel_w + kx) * w->out_c + oc];

				acc += in * k;
			}
		}
		acc = acc < p->out_min ? p->out_min : acc;
		y[oc] = acc > p->out_max ? p->out_max : acc;
	}
}

void tinyml_depthwise_conv_f32(const struct tinyml_depthwise_conv_f32 *p, const float *x, float *y)
{
	const struct tinyml_window *w = &p->window;

	for (int32_t n = 0; n < w->batches; n++) {
		for (int32_t oy = 0; oy < w->out_h; oy++) {
			const struct tinyml_span rows = tinyml_span(
				oy, w->stride_h, w->pad_top, w->kernel_h, w->dilation_h, w->in_h);

			for (int32_t ox = 0; ox < w->out_w; ox++) {
				convolve_position(p, x, y, rows,
						  tinyml_span(ox, w->stride_w, w->pad_left,
							      w->kernel_w, w->dilation_w, w->in_w));
				y += w->out_c;
			}
		}
		x += w->in_h * w->in_w * w->in_c;
	}
}
