/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/conv.h>
#include <tinyml/fixed_point.h>

/* All output channels of one position. */
static void position(const struct tinyml_conv_s8 *p, const int8_t *x, int8_t *y,
		     struct tinyml_span rows, struct tinyml_span cols)
{
	const struct tinyml_window *w = &p->window;
	const int32_t multiple = w->out_c / w->in_c;

	for (int32_t oc = 0; oc < w->out_c; oc++) {
		const int8_t *channel = &x[oc / multiple];
		int32_t acc = p->bias != NULL ? p->bias[oc] : 0;

		for (int32_t ky = rows.first; ky < rows.end; ky++) {
			const int32_t iy = rows.start + ky * w->dilation_h;

			for (int32_t kx = cols.first; kx < cols.end; kx++) {
				const int32_t ix = cols.start + kx * w->dilation_w;
				const int32_t in = channel[(iy * w->in_w + ix) * w->in_c];
				const int32_t k =
					p->weights[(ky * w->kernel_w + kx) * w->out_c + oc];

				acc += (in - p->in_zero) * (k - p->weight_zero);
			}
		}
		acc = tinyml_rescale(acc, p->multiplier[oc], p->shift[oc]);
		y[oc] = (int8_t)tinyml_clamp(acc + p->out_zero, p->out_min, p->out_max);
	}
}

void tinyml_depthwise_conv_s8(const struct tinyml_conv_s8 *p, const int8_t *x, int8_t *y)
{
	const struct tinyml_window *w = &p->window;

	for (int32_t n = 0; n < w->batches; n++) {
		for (int32_t oy = 0; oy < w->out_h; oy++) {
			const struct tinyml_span rows = tinyml_span(
				oy, w->stride_h, w->pad_top, w->kernel_h, w->dilation_h, w->in_h);

			for (int32_t ox = 0; ox < w->out_w; ox++) {
				position(p, x, y, rows,
					 tinyml_span(ox, w->stride_w, w->pad_left, w->kernel_w,
						     w->dilation_w, w->in_w));
				y += w->out_c;
			}
		}
		x += w->in_h * w->in_w * w->in_c;
	}
}
