/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/conv.h>

#include "../weighted/filters_f32.h"
#include "windows_f32.h"

/* The filters of a group run by run: sums wait in the output. */
static void conv_f32_runs(const struct tinyml_windows_f32 *v, struct tinyml_filters_f32 *f,
			  const float *x, float *y, int32_t times, bool two)
{
	const float *const bias = f->bias;
	const int32_t first = f->first;

	for (int32_t row = v->rows; row > 0; row--) {
		for (int32_t tap = v->taps; tap > 0; tap--) {
			f->bias = row == 1 && tap == 1 ? bias : NULL;
			tinyml_filters_f32(f, x, y, times, two);
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
static void conv_f32_compute(const struct tinyml_windows_f32 *v, const float *x, float *y,
			     int32_t times, bool two)
{
	const struct tinyml_conv_f32 *const p = v->params;
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
			tinyml_filters_f32(&f, x, y, times, two);
		} else {
			conv_f32_runs(v, &f, x, y, times, two);
		}
		f.weights += f.filter_size * group_out;
		f.bias = f.bias != NULL ? f.bias + group_out : NULL;
		x += group_in;
		y += group_out;
	}
}

static void conv_f32_all(const struct tinyml_conv_f32 *p, const float *x, float *y, int32_t step,
			 int32_t line)
{
	struct tinyml_windows_f32 v = {
		.window = p->window,
		.from_the_end = p->from_the_end,
		.params = p,
		.y_step = step,
		.y_line = line,
		.compute = conv_f32_compute,
	};

	tinyml_windows_f32(&v, x, y);
}

void tinyml_conv_f32(const struct tinyml_conv_f32 *p, const float *x, float *y)
{
	const struct tinyml_window *const w = &p->window;

	conv_f32_all(p, x, y, 0, 0);
	tinyml_limit_f32(y, w->batches * w->out_h * w->out_w * w->out_c, p->out_min, p->out_max);
}

void tinyml_conv_apart_f32(const struct tinyml_conv_apart_f32 *p, const float *x, float *y)
{
	const struct tinyml_window *const w = &p->conv.window;

	conv_f32_all(&p->conv, x, y, p->step, p->line);
	for (int32_t row = 0; row < w->out_h; row++) {
		for (int32_t col = 0; col < w->out_w; col++) {
			tinyml_limit_f32(&y[row * p->line + col * p->step], w->out_c,
					 p->conv.out_min, p->conv.out_max);
		}
	}
}
