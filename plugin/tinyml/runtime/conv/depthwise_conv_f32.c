/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/depthwise_conv.h>

#include "../weighted/filters_f32.h"
#include "depthwise_tile_f32.h"
#include "windows_f32.h"

static const float depthwise_conv_f32_zeros[8];

/* Several filters for each channel: outputs one by one. */
static void depthwise_conv_f32_multiple(const struct tinyml_depthwise_conv_f32 *p,
					struct depthwise_tile_f32 *t, const float *x,
					const float *w, float *y)
{
	const int32_t multiple = p->window.out_c / p->window.in_c;

	for (int32_t oc = 0; oc < p->window.out_c; oc++) {
		t->bias = p->bias != NULL ? &p->bias[oc] : depthwise_conv_f32_zeros;
		depthwise_tile_f32_one(t, &x[oc / multiple], &w[oc], &y[oc]);
	}
}

static void depthwise_conv_f32_compute(const struct tinyml_windows_f32 *v, const float *x, float *y,
				       int32_t times, bool two)
{
	const struct tinyml_depthwise_conv_f32 *const p = v->params;
	const int32_t channels = v->window.out_c, size = sizeof(float);
	const float *const w = &p->weights[v->first * channels];
	struct depthwise_tile_f32 t = {
		.rows = v->rows,
		.taps = v->taps,
		.x_step = v->tap * size,
		.w_step = channels * size,
		.x_skip = (v->line - v->taps * v->tap) * size,
		.w_skip = (v->window.kernel_w - v->taps) * channels * size,
		.bias = depthwise_conv_f32_zeros,
		.x_other = two ? v->x_other * size : 0, /* a single one is computed twice */
		.y_other = two ? v->y_other * size : 0,
	};

	for (; times > 0; times--, x += v->x_next, y += v->y_next) {
		if (channels != v->window.in_c) {
			depthwise_conv_f32_multiple(p, &t, x, w, y);
			continue;
		}
		for (int32_t c = 0; c < channels;) {
			if (p->bias != NULL) {
				t.bias = &p->bias[c];
			}
			c += depthwise_tile_f32(&t, &x[c], &w[c], &y[c], channels - c);
		}
	}
}

void tinyml_depthwise_conv_f32(const struct tinyml_depthwise_conv_f32 *p, const float *x, float *y)
{
	const struct tinyml_window *const w = &p->window;
	struct tinyml_windows_f32 v = {
		.window = p->window,
		.params = p,
		.compute = depthwise_conv_f32_compute,
	};

	tinyml_windows_f32(&v, x, y);
	tinyml_limit_f32(y, w->batches * w->out_h * w->out_w * w->out_c, p->out_min, p->out_max);
}
