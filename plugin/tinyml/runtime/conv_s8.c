/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/conv.h>
#include <tinyml/fixed_point.h>

/* One output value before scaling: the dot product of a filter and the window at (oy, ox). */
static int32_t accumulate(const struct tinyml_conv_s8 *p, const int8_t *x, const int8_t *filter,
			  struct tinyml_span rows, struct tinyml_span cols, int32_t group_c)
{
	const struct tinyml_window *w = &p->window;
	int32_t acc = 0;

	for (int32_t ky = rows.first; ky < rows.end; ky++) {
		const int32_t iy = rows.start + ky * w->dilation_h;

		for (int32_t kx = cols.first; kx < cols.end; kx++) {
			const int32_t ix = cols.start + kx * w->dilation_w;
			const int8_t *in = &x[(iy * w->in_w + ix) * w->in_c];
			const int8_t *k = &filter[(ky * w->kernel_w + kx) * group_c];

			for (int32_t c = 0; c < group_c; c++) {
				acc += (in[c] - p->in_zero) * (k[c] - p->weight_zero);
			}
		}
	}
	return acc;
}

void tinyml_conv_s8(const struct tinyml_conv_s8 *p, const int8_t *x, int8_t *y)
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
					const int8_t *group = &x[(oc / group_out) * group_c];
					int32_t acc =
						accumulate(p, group, &p->weights[oc * filter_size],
							   rows, cols, group_c);

					acc += p->bias != NULL ? p->bias[oc] : 0;
					acc = tinyml_rescale(acc, p->multiplier[oc], p->shift[oc]);
					*y++ = (int8_t)tinyml_clamp(acc + p->out_zero, p->out_min,
								    p->out_max);
				}
			}
		}
		x += w->in_h * w->in_w * w->in_c;
	}
}
