/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include <tinyml/tinyml.h>
#include <tinyml/to_f32.h>

/* Copy what a filter sees at one position, in the order of its weights. */
static void conv_s8_to_f32_gather(const struct tinyml_conv_s8_to_f32 *p, const int8_t *x,
				  struct tinyml_span rows, struct tinyml_span cols, int8_t *column)
{
	const struct tinyml_window *w = &p->window;
	const int32_t channels = w->in_c / p->groups;

	for (int32_t ky = 0; ky < w->kernel_h; ky++) {
		const int32_t row = (rows.start + ky * w->dilation_h) * w->in_w;
		const bool row_inside = ky >= rows.first && ky < rows.end;

		for (int32_t kx = 0; kx < w->kernel_w; kx++, column += channels) {
			const int32_t at = (row + cols.start + kx * w->dilation_w) * w->in_c;

			if (row_inside && kx >= cols.first && kx < cols.end) {
				memcpy(column, &x[at], (size_t)channels);
			} else {
				memset(column, p->in_zero, (size_t)channels);
			}
		}
	}
}

void tinyml_conv_s8_to_f32(const struct tinyml_conv_s8_to_f32 *p, const int8_t *x, float *y,
			   void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t group_in = w->in_c / p->groups, group_out = w->out_c / p->groups;

	TINYML_ASSERT(w->in_c % p->groups == 0 && w->out_c % p->groups == 0);
	for (int32_t n = 0; n < w->batches; n++, x += w->in_h * w->in_w * w->in_c) {
		for (int32_t o = 0; o < w->out_h * w->out_w; o++) {
			const struct tinyml_span rows =
				tinyml_span(o / w->out_w, w->stride_h, w->pad_top, w->kernel_h,
					    w->dilation_h, w->in_h);
			const struct tinyml_span cols =
				tinyml_span(o % w->out_w, w->stride_w, w->pad_left, w->kernel_w,
					    w->dilation_w, w->in_w);

			for (int32_t g = 0; g < p->groups; g++, y += group_out) {
				conv_s8_to_f32_gather(p, &x[g * group_in], rows, cols, scratch);
				tinyml_filters_s8_to_f32(&p->filters, scratch, g * group_out,
							 group_out, y);
			}
		}
	}
}
