/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/depthwise_conv.h>

#define DEPTHWISE_PARAMS struct tinyml_depthwise_conv_f32
#include "../weighted/filters_f32.h"
#include "depthwise_windows_f32.h"

void tinyml_depthwise_conv_f32(const struct tinyml_depthwise_conv_f32 *p, const float *x, float *y)
{
	const struct tinyml_window *const w = &p->window;
	struct tinyml_windows_f32 v = {
		.window = p->window,
		.params = p,
		.compute = depthwise_windows_compute,
	};

	tinyml_windows_f32(&v, x, y);
	tinyml_limit_f32(y, w->batches * w->out_h * w->out_w * w->out_c, p->out_min, p->out_max);
}
