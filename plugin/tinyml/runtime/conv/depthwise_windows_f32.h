/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * The windows of a float depthwise convolution times its filters, for both kinds of weights. The
 * file that includes this defines DEPTHWISE_PARAMS, the structure of the parameters.
 */

#ifndef TINYML_DEPTHWISE_WINDOWS_F32_H_
#define TINYML_DEPTHWISE_WINDOWS_F32_H_

#include <stddef.h>

#include "depthwise_tile_f32.h"
#include "windows_f32.h"

static const float depthwise_windows_zeros[8];

/* Several filters for each channel: outputs one by one. */
static void depthwise_windows_multiple(const DEPTHWISE_PARAMS *p, struct depthwise_tile_f32 *t,
				       const float *x, const tinyml_weight_f32 *w, float *y)
{
	const int32_t multiple = p->window.out_c / p->window.in_c;

	for (int32_t oc = 0; oc < p->window.out_c; oc++) {
		t->bias = p->bias != NULL ? &p->bias[oc] : depthwise_windows_zeros;
		depthwise_tile_f32_one(t, &x[oc / multiple], &w[oc], &y[oc]);
	}
}

static void depthwise_windows_compute(const struct tinyml_windows_f32 *v, const float *x, float *y,
				      int32_t times, bool two)
{
	const DEPTHWISE_PARAMS *const p = v->params;
	const int32_t channels = v->window.out_c, size = sizeof(float);
	const int32_t stored = tinyml_weights_stored(channels);
	const int32_t w_size = sizeof(tinyml_weight_f32);
	const tinyml_weight_f32 *const w = &p->weights[v->first * stored];
	struct depthwise_tile_f32 t = {
		.rows = v->rows,
		.taps = v->taps,
		.x_step = v->tap * size,
		.w_step = stored * w_size,
		.x_skip = (v->line - v->taps * v->tap) * size,
		.w_skip = (v->window.kernel_w - v->taps) * stored * w_size,
		.bias = depthwise_windows_zeros,
		.x_other = two ? v->x_other * size : 0, /* a single one is computed twice */
		.y_other = two ? v->y_other * size : 0,
	};

	for (; times > 0; times--, x += v->x_next, y += v->y_next) {
		if (channels != v->window.in_c) {
			depthwise_windows_multiple(p, &t, x, w, y);
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

#endif /* TINYML_DEPTHWISE_WINDOWS_F32_H_ */
