/* SPDX-License-Identifier: Apache-2.0 */

/* The loops of a convolution, for one set of element types. The file that includes this says:
 *
 *   CONV_NAME      the function to define
 *   CONV_PARAMS    its parameters: a struct with window, groups and weights
 *   CONV_X         the type of input and output elements
 *   CONV_WEIGHT    the type of weights
 *   CONV_SUM       the type in which products are added up
 *
 * and has a function finish(params, sum, output channel) that makes an output element of a sum.
 */

#include <tinyml/conv.h>

/* One filter at one position; x is the first input channel of its group. */
static CONV_SUM accumulate(const struct tinyml_window *w, const CONV_X *x,
			   const CONV_WEIGHT *filter, struct tinyml_span rows,
			   struct tinyml_span cols, int32_t group_in)
{
	CONV_SUM sum = 0;

	for (int32_t ky = rows.first; ky < rows.end; ky++) {
		const int32_t iy = rows.start + ky * w->dilation_h;

		for (int32_t kx = cols.first; kx < cols.end; kx++) {
			const int32_t ix = cols.start + kx * w->dilation_w;
			const CONV_X *in = &x[(iy * w->in_w + ix) * w->in_c];
			const CONV_WEIGHT *k = &filter[(ky * w->kernel_w + kx) * group_in];

			for (int32_t c = 0; c < group_in; c++) {
				sum += in[c] * k[c];
			}
		}
	}
	return sum;
}

void CONV_NAME(const CONV_PARAMS *p, const CONV_X *x, CONV_X *y)
{
	const struct tinyml_window *w = &p->window;
	const int32_t group_in = w->in_c / p->groups;
	const int32_t group_out = w->out_c / p->groups;
	const int32_t filter_size = w->kernel_h * w->kernel_w * group_in;

	for (int32_t n = 0; n < w->batches; n++) {
		for (int32_t o = 0; o < w->out_h * w->out_w; o++) {
			const struct tinyml_span rows =
				tinyml_span(o / w->out_w, w->stride_h, w->pad_top, w->kernel_h,
					    w->dilation_h, w->in_h);
			const struct tinyml_span cols =
				tinyml_span(o % w->out_w, w->stride_w, w->pad_left, w->kernel_w,
					    w->dilation_w, w->in_w);

			for (int32_t oc = 0; oc < w->out_c; oc++) {
				const CONV_X *group = &x[oc / group_out * group_in];
				const CONV_WEIGHT *filter = &p->weights[oc * filter_size];

				*y++ = finish(p, accumulate(w, group, filter, rows, cols, group_in),
					      oc);
			}
		}
		x += w->in_h * w->in_w * w->in_c;
	}
}
