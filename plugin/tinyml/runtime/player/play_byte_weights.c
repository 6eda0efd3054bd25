/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Layers of float with weights of one byte, and layers of int8 whose sums become float. */

#include <stddef.h>

#include <tinyml/byte_weights.h>
#include <tinyml/play_records.h>
#include <tinyml/to_f32.h>

#include "window.h"

void tinyml_play_conv_f32_s8(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_conv_f32_s8 *, const float *, float *);
	const struct tinyml_play_conv_f32_s8 *record = play->record;
	const struct tinyml_conv_f32_s8 p = {
		.window = record->window,
		.groups = record->groups,
		.from_the_end = record->from_the_end != 0u,
		.weights = tinyml_play_table(play, record->weights),
		.scales = tinyml_play_table(play, record->scales),
		.bias = tinyml_play_table(play, record->bias),
		.out_min = record->out_min,
		.out_max = record->out_max,
	};

	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1]);
}

void tinyml_play_dense_f32_s8(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_dense_f32_s8 *, const float *, float *);
	const struct tinyml_play_dense_f32_s8 *record = play->record;
	const struct tinyml_dense_f32_s8 p = {
		.rows = record->rows,
		.inputs = record->inputs,
		.outputs = record->outputs,
		.weights = tinyml_play_table(play, record->weights),
		.scales = tinyml_play_table(play, record->scales),
		.bias = tinyml_play_table(play, record->bias),
		.out_min = record->out_min,
		.out_max = record->out_max,
	};

	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1]);
}

static struct tinyml_filters_to_f32
play_byte_weights_filters(const struct tinyml_play *play,
			  const struct tinyml_play_filters_to_f32 *record)
{
	return (struct tinyml_filters_to_f32){
		.weights = tinyml_play_table(play, record->weights),
		.zeros = tinyml_play_table(play, record->zeros),
		.scales = tinyml_play_table(play, record->scales),
		.bias = tinyml_play_table(play, record->bias),
		.out_min = record->out_min,
		.out_max = record->out_max,
		.inputs = record->inputs,
		.weight_zero = (int16_t)record->weight_zero,
	};
}

void tinyml_play_dense_s8_to_f32(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_dense_s8_to_f32 *, const int8_t *, float *);
	const struct tinyml_play_dense_s8_to_f32 *record = play->record;
	const struct tinyml_dense_s8_to_f32 p = {
		.rows = record->rows,
		.outputs = record->outputs,
		.filters = play_byte_weights_filters(play, &record->filters),
	};

	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1]);
}

void tinyml_play_conv_s8_to_f32(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_conv_s8_to_f32 *, const int8_t *, float *, void *);
	const struct tinyml_play_conv_s8_to_f32 *record = play->record;
	const struct tinyml_conv_s8_to_f32 p = {
		.window = record->window,
		.groups = record->groups,
		.in_zero = record->in_zero,
		.filters = play_byte_weights_filters(play, &record->filters),
	};

	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1],
					   play->operand[2]);
}

/* Numbers for each output: one table, or a second one unless it is NULL. */
static void play_byte_weights_outputs(struct tinyml_check *check, uint32_t scales, uint32_t bias,
				      uint32_t outputs)
{
	const uint32_t bytes = tinyml_check_times(outputs, 4);

	tinyml_check_that(check, scales != 0u);
	tinyml_check_constants(check, scales, bytes, 4);
	if (bias != 0u) {
		tinyml_check_constants(check, bias, bytes, 4);
	}
}

uint32_t tinyml_check_conv_f32_s8(struct tinyml_check *check)
{
	const struct tinyml_play_conv_f32_s8 *r = check->record;
	const struct tinyml_window *const w = &r->window;
	const uint32_t outputs = tinyml_check_window(check, w, 4);
	uint32_t elements;

	tinyml_check_that(check, r->groups > 0 && w->in_c % r->groups == 0 &&
					 w->out_c % r->groups == 0 && r->from_the_end <= 1u &&
					 r->weights != 0u);
	if (check->wrong) {
		return 0;
	}
	elements = tinyml_check_times(tinyml_check_taps(w), (uint32_t)(w->in_c / r->groups));
	tinyml_check_constants(check, r->weights, tinyml_check_times(elements, (uint32_t)w->out_c),
			       1);
	play_byte_weights_outputs(check, r->scales, r->bias, (uint32_t)w->out_c);
	return tinyml_check_times(outputs, tinyml_check_plus(elements, 1));
}

uint32_t tinyml_check_dense_f32_s8(struct tinyml_check *check)
{
	const struct tinyml_play_dense_f32_s8 *r = check->record;
	const uint32_t rows = (uint32_t)r->rows, inputs = (uint32_t)r->inputs;
	const uint32_t filters = (uint32_t)r->outputs;
	const uint32_t outputs = tinyml_check_times(rows, filters);

	tinyml_check_that(check,
			  r->rows > 0 && r->inputs > 0 && r->outputs > 0 && r->weights != 0u);
	tinyml_check_reads(check, 0, tinyml_check_times(tinyml_check_times(rows, inputs), 4), 4);
	tinyml_check_writes(check, 1, tinyml_check_times(outputs, 4), 4);
	tinyml_check_constants(check, r->weights, tinyml_check_times(inputs, filters), 1);
	play_byte_weights_outputs(check, r->scales, r->bias, filters);
	return tinyml_check_times(outputs, tinyml_check_plus(inputs, 1));
}

/* Filters of `inputs` elements. */
static void play_byte_weights_check(struct tinyml_check *check,
				    const struct tinyml_play_filters_to_f32 *r, uint32_t inputs,
				    uint32_t outputs)
{
	tinyml_check_that(check,
			  r->weights != 0u && r->zeros != 0u && (uint32_t)r->inputs == inputs &&
				  r->weight_zero >= INT16_MIN && r->weight_zero <= INT16_MAX);
	tinyml_check_constants(check, r->weights, tinyml_check_times(inputs, outputs), 1);
	tinyml_check_constants(check, r->zeros, tinyml_check_times(outputs, 4), 4);
	play_byte_weights_outputs(check, r->scales, r->bias, outputs);
}

uint32_t tinyml_check_dense_s8_to_f32(struct tinyml_check *check)
{
	const struct tinyml_play_dense_s8_to_f32 *r = check->record;
	const uint32_t rows = (uint32_t)r->rows, inputs = (uint32_t)r->filters.inputs;
	const uint32_t outputs = tinyml_check_times(rows, (uint32_t)r->outputs);

	tinyml_check_that(check, r->rows > 0 && r->outputs > 0 && r->filters.inputs > 0);
	tinyml_check_reads(check, 0, tinyml_check_times(rows, inputs), 1);
	tinyml_check_writes(check, 1, tinyml_check_times(outputs, 4), 4);
	play_byte_weights_check(check, &r->filters, inputs, (uint32_t)r->outputs);
	return tinyml_check_times(outputs, tinyml_check_plus(inputs, 1));
}

uint32_t tinyml_check_conv_s8_to_f32(struct tinyml_check *check)
{
	const struct tinyml_play_conv_s8_to_f32 *r = check->record;
	const struct tinyml_window *const w = &r->window;
	const uint32_t outputs = tinyml_check_window_between(check, w, 1, 4);
	uint32_t elements;

	tinyml_check_that(check,
			  r->groups > 0 && w->in_c % r->groups == 0 && w->out_c % r->groups == 0);
	if (check->wrong) {
		return 0;
	}
	elements = tinyml_check_times(tinyml_check_taps(w), (uint32_t)(w->in_c / r->groups));
	tinyml_check_writes(check, 2, elements, 1);
	play_byte_weights_check(check, &r->filters, elements, (uint32_t)w->out_c);
	return tinyml_check_times(outputs, tinyml_check_plus(elements, 1));
}
