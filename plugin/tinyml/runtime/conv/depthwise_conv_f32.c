/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/depthwise_conv.h>

static float depthwise_conv_f32_limited(const struct tinyml_depthwise_conv_f32 *p, float sum)
{
	sum = sum < p->out_min ? p->out_min : sum;
	return sum > p->out_max ? p->out_max : sum;
}

#define TILE 8

/* TILE neighbouring channels of one position, each with one filter: every tap is a run of TILE
 * inputs and a run of TILE weights. The sums have names so that compilers keep them in registers.
 */
static void depthwise_conv_f32_tile(const struct tinyml_depthwise_conv_f32 *p, const float *x,
				    float *y, int32_t first, struct tinyml_span rows,
				    struct tinyml_span cols)
{
	const struct tinyml_window *w = &p->window;
	const int32_t channels = w->in_c, step = w->dilation_w * channels;
	float sums[TILE] = {0.0f};
	float s0, s1, s2, s3, s4, s5, s6, s7;

	if (p->bias != NULL) {
		for (int32_t i = 0; i < TILE; i++) {
			sums[i] = p->bias[first + i];
		}
	}
	s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
	s4 = sums[4], s5 = sums[5], s6 = sums[6], s7 = sums[7];
	for (int32_t ky = rows.first; ky < rows.end; ky++) {
		const int32_t iy = rows.start + ky * w->dilation_h;
		const int32_t ix = cols.start + cols.first * w->dilation_w;
		const float *in = &x[(iy * w->in_w + ix) * channels + first];
		const float *k = &p->weights[(ky * w->kernel_w + cols.first) * channels + first];

		for (int32_t left = cols.end - cols.first; left > 0; left--) {
			s0 += in[0] * k[0];
			s1 += in[1] * k[1];
			s2 += in[2] * k[2];
			s3 += in[3] * k[3];
			s4 += in[4] * k[4];
			s5 += in[5] * k[5];
			s6 += in[6] * k[6];
			s7 += in[7] * k[7];
			in += step;
			k += channels;
		}
	}
	y[0] = depthwise_conv_f32_limited(p, s0);
	y[1] = depthwise_conv_f32_limited(p, s1);
	y[2] = depthwise_conv_f32_limited(p, s2);
	y[3] = depthwise_conv_f32_limited(p, s3);
	y[4] = depthwise_conv_f32_limited(p, s4);
	y[5] = depthwise_conv_f32_limited(p, s5);
	y[6] = depthwise_conv_f32_limited(p, s6);
	y[7] = depthwise_conv_f32_limited(p, s7);
}

/* All output channels of one position. */
static void depthwise_conv_f32_convolve_position(const struct tinyml_depthwise_conv_f32 *p,
						 const float *x, float *y, struct tinyml_span rows,
						 struct tinyml_span cols)
{
	const struct tinyml_window *w = &p->window;
	const int32_t multiple = w->out_c / w->in_c;
	int32_t oc = 0;

	for (; multiple == 1 && w->out_c - oc >= TILE; oc += TILE) {
		depthwise_conv_f32_tile(p, x, &y[oc], oc, rows, cols);
	}
	for (; oc < w->out_c; oc++) {
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
		y[oc] = depthwise_conv_f32_limited(p, acc);
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
				depthwise_conv_f32_convolve_position(
					p, x, y, rows,
					tinyml_span(ox, w->stride_w, w->pad_left, w->kernel_w,
						    w->dilation_w, w->in_w));
				y += w->out_c;
			}
		}
		x += w->in_h * w->in_w * w->in_c;
	}
}
