/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions, depthwise convolutions and dense layers of float. */

#include <stddef.h>
#include <string.h>

#include <tinyml/dense.h>
#include <tinyml/depthwise_conv.h>
#include <tinyml/play_records.h>

#include "window.h"

static struct tinyml_conv_f32 play_weighted_f32_conv(const struct tinyml_play *play,
						     const struct tinyml_play_conv_f32 *record)
{
	return (struct tinyml_conv_f32){
		.window = record->window,
		.groups = record->groups,
		.from_the_end = record->from_the_end != 0u,
		.out_min = record->out_min,
		.out_max = record->out_max,
		.weights = tinyml_play_table(play, record->weights),
		.bias = tinyml_play_table(play, record->bias),
	};
}

void tinyml_play_conv_f32(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_conv_f32 *, const float *, float *);
	const struct tinyml_conv_f32 p = play_weighted_f32_conv(play, play->record);

	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1]);
}

void tinyml_play_conv_apart_f32(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_conv_apart_f32 *, const float *, float *);
	const struct tinyml_play_conv_apart_f32 *record = play->record;
	const struct tinyml_conv_apart_f32 p = {
		.conv = play_weighted_f32_conv(play, &record->conv),
		.step = record->step,
		.line = record->line,
	};

	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1]);
}

void tinyml_play_depthwise_conv_f32(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_depthwise_conv_f32 *, const float *, float *);
	const struct tinyml_play_conv_f32 *record = play->record;
	const struct tinyml_depthwise_conv_f32 p = {
		.window = record->window,
		.out_min = record->out_min,
		.out_max = record->out_max,
		.weights = tinyml_play_table(play, record->weights),
		.bias = tinyml_play_table(play, record->bias),
	};

	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1]);
}

void tinyml_play_dense_f32(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_dense_f32 *, const float *, float *);
	const struct tinyml_play_dense_f32 *record = play->record;
	const struct tinyml_dense_f32 p = {
		.rows = record->rows,
		.inputs = record->inputs,
		.outputs = record->outputs,
		.weights = tinyml_play_table(play, record->weights),
		.bias = tinyml_play_table(play, record->bias),
		.out_min = record->out_min,
		.out_max = record->out_max,
	};

	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1]);
}

/* Weights, and a bias unless it is NULL. */
static void play_weighted_f32_tables(struct tinyml_check *check, uint32_t weights, uint32_t count,
				     uint32_t bias, uint32_t channels)
{
	tinyml_check_that(check, weights != 0u);
	tinyml_check_constants(check, weights, tinyml_check_times(count, 4), 4);
	if (bias != 0u) {
		tinyml_check_constants(check, bias, tinyml_check_times(channels, 4), 4);
	}
}

uint32_t tinyml_check_conv_f32(struct tinyml_check *check)
{
	const struct tinyml_play_conv_f32 *r = check->record;
	const struct tinyml_window *const w = &r->window;
	const uint32_t outputs = tinyml_check_window(check, w, 4);
	uint32_t elements;

	tinyml_check_that(check, r->groups > 0 && w->in_c % r->groups == 0 &&
					 w->out_c % r->groups == 0 && r->from_the_end <= 1u);
	if (check->wrong) {
		return 0;
	}
	elements = tinyml_check_times(tinyml_check_taps(w), (uint32_t)(w->in_c / r->groups));
	play_weighted_f32_tables(check, r->weights,
				 tinyml_check_times(elements, (uint32_t)w->out_c), r->bias,
				 (uint32_t)w->out_c);
	return tinyml_check_times(outputs, tinyml_check_plus(elements, 1));
}

/* What windows reach, padded on either side, stays below the largest int16. */
static bool play_weighted_f32_axis(int32_t in, int32_t out, int32_t stride, int32_t kernel,
				   int32_t dilation, int32_t pad)
{
	return in > 0 && out > 0 && stride > 0 && kernel > 0 && dilation > 0 && pad > INT16_MIN &&
	       tinyml_check_reach(out, stride, kernel, dilation) <= WINDOW_MOST;
}

uint32_t tinyml_check_conv_apart_f32(struct tinyml_check *check)
{
	const struct tinyml_play_conv_apart_f32 *record = check->record;
	const struct tinyml_play_conv_f32 *r = &record->conv;
	const struct tinyml_window *const w = &r->window;
	const uint32_t inputs = tinyml_check_image(1, w->in_h, w->in_w, w->in_c);
	const uint32_t outputs = tinyml_check_image(1, w->out_h, w->out_w, w->out_c);
	uint32_t elements, end;

	tinyml_check_that(
		check, w->batches == 1 && r->groups == 1 && r->from_the_end == 0u && w->in_c > 0 &&
			       w->out_c > 0 && record->step > 0 && record->line >= 0 &&
			       play_weighted_f32_axis(w->in_h, w->out_h, w->stride_h, w->kernel_h,
						      w->dilation_h, w->pad_top) &&
			       play_weighted_f32_axis(w->in_w, w->out_w, w->stride_w, w->kernel_w,
						      w->dilation_w, w->pad_left));
	if (check->wrong) {
		return 0;
	}
	end = tinyml_check_plus(
		tinyml_check_times((uint32_t)w->out_h - 1u, (uint32_t)record->line),
		tinyml_check_times((uint32_t)w->out_w - 1u, (uint32_t)record->step));
	tinyml_check_reads(check, 0, tinyml_check_times(inputs, 4), 4);
	tinyml_check_writes(check, 1,
			    tinyml_check_times(tinyml_check_plus(end, (uint32_t)w->out_c), 4), 4);
	elements = tinyml_check_times(tinyml_check_taps(w), (uint32_t)w->in_c);
	play_weighted_f32_tables(check, r->weights,
				 tinyml_check_times(elements, (uint32_t)w->out_c), r->bias,
				 (uint32_t)w->out_c);
	return tinyml_check_times(outputs, tinyml_check_plus(elements, 1));
}

uint32_t tinyml_check_depthwise_conv_f32(struct tinyml_check *check)
{
	const struct tinyml_play_conv_f32 *r = check->record;
	const struct tinyml_window *const w = &r->window;
	const uint32_t outputs = tinyml_check_window(check, w, 4);
	const uint32_t taps = tinyml_check_taps(w);

	if (check->wrong) {
		return 0;
	}
	tinyml_check_that(check, w->out_c % w->in_c == 0);
	play_weighted_f32_tables(check, r->weights, tinyml_check_times(taps, (uint32_t)w->out_c),
				 r->bias, (uint32_t)w->out_c);
	return tinyml_check_times(outputs, tinyml_check_plus(taps, 1));
}

uint32_t tinyml_check_dense_f32(struct tinyml_check *check)
{
	const struct tinyml_play_dense_f32 *r = check->record;
	const uint32_t rows = (uint32_t)r->rows, inputs = (uint32_t)r->inputs;
	const uint32_t filters = (uint32_t)r->outputs;
	const uint32_t outputs = tinyml_check_times(rows, filters);

	tinyml_check_that(check, r->rows > 0 && r->inputs > 0 && r->outputs > 0);
	tinyml_check_reads(check, 0, tinyml_check_times(tinyml_check_times(rows, inputs), 4), 4);
	tinyml_check_writes(check, 1, tinyml_check_times(outputs, 4), 4);
	play_weighted_f32_tables(check, r->weights, tinyml_check_times(inputs, filters), r->bias,
				 filters);
	return tinyml_check_times(outputs, tinyml_check_plus(inputs, 1));
}
