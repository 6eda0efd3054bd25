/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/maths.h>
#include <tinyml/sample.h>

/* An element, or zero outside the image. */
static float deform_conv_element_or_zero(const struct tinyml_deform_conv *p, const float *plane,
					 int32_t y, int32_t x)
{
	if (y < 0 || y >= p->in_h || x < 0 || x >= p->in_w) {
		return 0.0f;
	}
	return plane[y * p->in_w + x];
}

/* The image at a position between its elements. */
static float deform_conv_interpolate(const struct tinyml_deform_conv *p, const float *plane,
				     float v, float u)
{
	if (!(v > -1.0f && v < (float)p->in_h && u > -1.0f && u < (float)p->in_w)) {
		return 0.0f;
	}
	const int32_t y = (int32_t)tinyml_floorf(v);
	const int32_t x = (int32_t)tinyml_floorf(u);
	const float b = v - (float)y;
	const float a = u - (float)x;

	return (1.0f - b) * ((1.0f - a) * deform_conv_element_or_zero(p, plane, y, x) +
			     a * deform_conv_element_or_zero(p, plane, y, x + 1)) +
	       b * ((1.0f - a) * deform_conv_element_or_zero(p, plane, y + 1, x) +
		    a * deform_conv_element_or_zero(p, plane, y + 1, x + 1));
}

/* The contribution of one input channel to one output element. `offset` and `mask` are those of its
 * group. */
static float deform_conv_channel_sum(const struct tinyml_deform_conv *p, const float *plane,
				     const float *w, const float *offset, const float *mask,
				     int32_t oy, int32_t ox)
{
	const int32_t area = p->out_h * p->out_w;
	const int32_t at = oy * p->out_w + ox;
	float sum = 0.0f;

	for (int32_t k = 0; k < p->kernel_h * p->kernel_w; k++) {
		const int32_t y = oy * p->stride_h - p->pad_top + k / p->kernel_w * p->dilation_h;
		const int32_t x = ox * p->stride_w - p->pad_left + k % p->kernel_w * p->dilation_w;
		const float v =
			deform_conv_interpolate(p, plane, (float)y + offset[2 * k * area + at],
						(float)x + offset[(2 * k + 1) * area + at]);

		sum += v * w[k] * (mask != NULL ? mask[k * area + at] : 1.0f);
	}
	return sum;
}

void tinyml_deform_conv_f32(const struct tinyml_deform_conv *p, const float *x, const float *w,
			    const float *offset, const float *bias, const float *mask, float *y)
{
	const int32_t taps = p->kernel_h * p->kernel_w;
	const int32_t plane = p->in_h * p->in_w;
	const int32_t area = p->out_h * p->out_w;
	const int32_t group_in = p->in_c / p->groups;
	const int32_t group_out = p->out_c / p->groups;
	const int32_t offset_in = p->in_c / p->offset_groups;

	for (int32_t n = 0; n < p->batches; n++) {
		for (int32_t oc = 0; oc < p->out_c; oc++) {
			for (int32_t i = 0; i < area; i++) {
				float sum = bias != NULL ? bias[oc] : 0.0f;

				for (int32_t c = 0; c < group_in; c++) {
					const int32_t ic = oc / group_out * group_in + c;
					const int32_t g = ic / offset_in;

					sum += deform_conv_channel_sum(
						p, &x[ic * plane], &w[(oc * group_in + c) * taps],
						&offset[g * 2 * taps * area],
						mask != NULL ? &mask[g * taps * area] : NULL,
						i / p->out_w, i % p->out_w);
				}
				*y++ = sum;
			}
		}
		x += p->in_c * plane;
		offset += p->offset_groups * 2 * taps * area;
		mask = mask != NULL ? mask + p->offset_groups * taps * area : NULL;
	}
}
