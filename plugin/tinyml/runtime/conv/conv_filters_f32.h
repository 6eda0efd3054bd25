/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * The windows of a float convolution times its filters, for both kinds of weights. The file that
 * includes this defines CONV_PARAMS, the structure of the parameters.
 */

#ifndef TINYML_CONV_FILTERS_F32_H_
#define TINYML_CONV_FILTERS_F32_H_

#include <stddef.h>

#include "../weighted/filters_f32.h"
#include "windows_f32.h"

/* The filters of a group run by run: sums wait in the output. */
static void conv_filters_runs(const struct tinyml_windows_f32 *v, struct tinyml_filters_f32 *f,
			      const float *x, float *y, int32_t times, bool two)
{
	const float *const bias = f->bias;
	const int32_t first = f->first;

	for (int32_t row = v->rows; row > 0; row--) {
		for (int32_t tap = v->taps; tap > 0; tap--) {
			f->bias = row == 1 && tap == 1 ? bias : NULL;
			TINYML_FILTERS(f, x, y, times, two);
			f->go_on = true;
			f->first += f->count;
			x += v->tap;
		}
		f->first += f->w_skip;
		x += v->line - v->taps * v->tap;
	}
	f->go_on = false;
	f->first = first;
	f->bias = bias;
}

/* All filters. Taps that are neighbours in the input, as they are in the filter, are one run. */
static void conv_filters_compute(const struct tinyml_windows_f32 *v, const float *x, float *y,
				 int32_t times, bool two)
{
	const CONV_PARAMS *const p = v->params;
	const struct tinyml_window *const w = &v->window;
	const int32_t group_in = w->in_c / p->groups, group_out = w->out_c / p->groups;
	const bool at_once =
		v->rows == 0 || (p->groups == 1 && (w->dilation_w == 1 || v->taps == 1));
	struct tinyml_filters_f32 f = {
		.filters = group_out,
		.filter_size = w->kernel_h * w->kernel_w * group_in,
		.first = v->first * group_in,
		.rows = at_once ? v->rows : 1,
		.count = at_once ? v->taps * group_in : group_in,
		.w_skip = (w->kernel_w - v->taps) * group_in,
		.x_other = v->x_other,
		.y_other = v->y_other,
		.x_next = v->x_next,
		.y_next = v->y_next,
		.weights = p->weights,
		.bias = p->bias,
	};

	f.x_skip = v->line - f.count;
	for (int32_t i = 0; i < p->groups; i++) {
		if (at_once) {
			TINYML_FILTERS(&f, x, y, times, two);
		} else {
			conv_filters_runs(v, &f, x, y, times, two);
		}
		f.weights += tinyml_weights_stored(f.filter_size * group_out);
		f.bias = f.bias != NULL ? f.bias + group_out : NULL;
		x += group_in;
		y += group_out;
	}
}

static void conv_filters_all(const CONV_PARAMS *p, const float *x, float *y, int32_t step,
			     int32_t line)
{
	struct tinyml_windows_f32 v = {
		.window = p->window,
		.from_the_end = p->from_the_end,
		.params = p,
		.y_step = step,
		.y_line = line,
		.compute = conv_filters_compute,
	};

	tinyml_windows_f32(&v, x, y);
}

#endif /* TINYML_CONV_FILTERS_F32_H_ */
