/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/conv.h>

#define CONV_PARAMS struct tinyml_conv_f32
#include "conv_filters_f32.h"

void tinyml_conv_f32(const struct tinyml_conv_f32 *p, const float *x, float *y)
{
	const struct tinyml_window *const w = &p->window;

	conv_filters_all(p, x, y, 0, 0);
	tinyml_limit_f32(y, w->batches * w->out_h * w->out_w * w->out_c, p->out_min, p->out_max);
}

void tinyml_conv_apart_f32(const struct tinyml_conv_apart_f32 *p, const float *x, float *y)
{
	const struct tinyml_window *const w = &p->conv.window;

	conv_filters_all(&p->conv, x, y, p->step, p->line);
	for (int32_t row = 0; row < w->out_h; row++) {
		for (int32_t col = 0; col < w->out_w; col++) {
			tinyml_limit_f32(&y[row * p->line + col * p->step], w->out_c,
					 p->conv.out_min, p->conv.out_max);
		}
	}
}
