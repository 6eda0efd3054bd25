/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Checks of float convolutions and dense layers, whose records are the same for both kinds of
 * weights: floats or, in a file with TINYML_HALF_WEIGHTS, float16 numbers.
 */

#ifndef TINYML_WEIGHTED_CHECKS_F32_H_
#define TINYML_WEIGHTED_CHECKS_F32_H_

#include <tinyml/play_records.h>

#include "../weighted/weight_f32.h"
#include "window.h"

#if TINYML_HALF_WEIGHTS

/* Weights that begin at multiples of four bytes. */
static inline uint32_t weighted_checks_even(uint32_t count)
{
	return tinyml_check_plus(count, count & 1u);
}

static inline uint32_t weighted_checks_of_groups(uint32_t elements, uint32_t filters,
						 uint32_t groups)
{
	const uint32_t group = tinyml_check_times(elements, filters / groups);

	return tinyml_check_times(weighted_checks_even(group), groups);
}

#else

static inline uint32_t weighted_checks_even(uint32_t count)
{
	return count;
}

static inline uint32_t weighted_checks_of_groups(uint32_t elements, uint32_t filters,
						 uint32_t groups)
{
	(void)groups;
	return tinyml_check_times(elements, filters);
}

#endif

/* Weights, and a bias unless it is NULL. */
static void weighted_checks_tables(struct tinyml_check *check, uint32_t weights, uint32_t count,
				   uint32_t bias, uint32_t channels)
{
	tinyml_check_that(check, weights != 0u);
	tinyml_check_constants(check, weights,
			       tinyml_check_times(count, (uint32_t)sizeof(tinyml_weight_f32)), 4);
	if (bias != 0u) {
		tinyml_check_constants(check, bias, tinyml_check_times(channels, 4), 4);
	}
}

static uint32_t weighted_checks_conv(struct tinyml_check *check)
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
	weighted_checks_tables(
		check, r->weights,
		weighted_checks_of_groups(elements, (uint32_t)w->out_c, (uint32_t)r->groups),
		r->bias, (uint32_t)w->out_c);
	return tinyml_check_times(outputs, tinyml_check_plus(elements, 1));
}

/* What windows reach, padded on either side, stays below the largest int16. */
static bool weighted_checks_axis(int32_t in, int32_t out, int32_t stride, int32_t kernel,
				 int32_t dilation, int32_t pad)
{
	return in > 0 && out > 0 && stride > 0 && kernel > 0 && dilation > 0 && pad > INT16_MIN &&
	       tinyml_check_reach(out, stride, kernel, dilation) <= WINDOW_MOST;
}

static uint32_t weighted_checks_conv_apart(struct tinyml_check *check)
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
			       weighted_checks_axis(w->in_h, w->out_h, w->stride_h, w->kernel_h,
						    w->dilation_h, w->pad_top) &&
			       weighted_checks_axis(w->in_w, w->out_w, w->stride_w, w->kernel_w,
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
	weighted_checks_tables(check, r->weights, tinyml_check_times(elements, (uint32_t)w->out_c),
			       r->bias, (uint32_t)w->out_c);
	return tinyml_check_times(outputs, tinyml_check_plus(elements, 1));
}

static uint32_t weighted_checks_depthwise(struct tinyml_check *check)
{
	const struct tinyml_play_conv_f32 *r = check->record;
	const struct tinyml_window *const w = &r->window;
	const uint32_t outputs = tinyml_check_window(check, w, 4);
	const uint32_t taps = tinyml_check_taps(w);

	if (check->wrong) {
		return 0;
	}
	tinyml_check_that(check, w->out_c % w->in_c == 0);
	weighted_checks_tables(check, r->weights,
			       tinyml_check_times(taps, weighted_checks_even((uint32_t)w->out_c)),
			       r->bias, (uint32_t)w->out_c);
	return tinyml_check_times(outputs, tinyml_check_plus(taps, 1));
}

static uint32_t weighted_checks_dense(struct tinyml_check *check)
{
	const struct tinyml_play_dense_f32 *r = check->record;
	const uint32_t rows = (uint32_t)r->rows, inputs = (uint32_t)r->inputs;
	const uint32_t filters = (uint32_t)r->outputs;
	const uint32_t outputs = tinyml_check_times(rows, filters);

	tinyml_check_that(check, r->rows > 0 && r->inputs > 0 && r->outputs > 0);
	tinyml_check_reads(check, 0, tinyml_check_times(tinyml_check_times(rows, inputs), 4), 4);
	tinyml_check_writes(check, 1, tinyml_check_times(outputs, 4), 4);
	weighted_checks_tables(check, r->weights, tinyml_check_times(inputs, filters), r->bias,
			       filters);
	return tinyml_check_times(outputs, tinyml_check_plus(inputs, 1));
}

#endif /* TINYML_WEIGHTED_CHECKS_F32_H_ */
