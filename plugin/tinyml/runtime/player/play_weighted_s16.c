/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions and dense layers of int16. */

#include <stddef.h>

#include <tinyml/conv_s16.h>
#include <tinyml/play_records.h>

#include "window.h"

void tinyml_play_conv_s16(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_conv_s16 *, const int16_t *, int16_t *, void *);
	const struct tinyml_play_conv_s16 *record = play->record;
	const struct tinyml_conv_s16 p = {
		.window = record->window,
		.groups = record->groups,
		.out_min = record->out_min,
		.out_max = record->out_max,
		.round_once = record->round_once != 0u,
		.weights = tinyml_play_table(play, record->weights),
		.bias = tinyml_play_table(play, record->bias),
		.multiplier = tinyml_play_table(play, record->multiplier),
		.shift = tinyml_play_table(play, record->shift),
	};

	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1],
					   play->operand[2]);
}

void tinyml_play_dense_s16(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_dense_s16 *, const int16_t *, int16_t *);
	const struct tinyml_play_dense_s16 *record = play->record;
	const struct tinyml_dense_s16 p = {
		.rows = record->rows,
		.inputs = record->inputs,
		.outputs = record->outputs,
		.weights = tinyml_play_table(play, record->weights),
		.bias = tinyml_play_table(play, record->bias),
		.multiplier = tinyml_play_table(play, record->multiplier),
		.shift = tinyml_play_table(play, record->shift),
		.out_min = record->out_min,
		.out_max = record->out_max,
		.round_once = record->round_once != 0u,
	};

	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1]);
}

/* Filters, and what each output has. */
static void play_weighted_s16_filters(struct tinyml_check *check, uint32_t weights, uint32_t bias,
				      uint32_t multiplier, uint32_t shift, uint32_t elements,
				      uint32_t outputs)
{
	tinyml_check_that(check, weights != 0u && multiplier != 0u && shift != 0u);
	tinyml_check_constants(check, weights, tinyml_check_times(elements, outputs), 1);
	tinyml_check_constants(check, multiplier, tinyml_check_times(outputs, 4), 4);
	tinyml_check_constants(check, shift, outputs, 1);
	if (bias != 0u) {
		tinyml_check_constants(check, bias, tinyml_check_times(outputs, 8), 8);
	}
}

uint32_t tinyml_check_conv_s16(struct tinyml_check *check)
{
	const struct tinyml_play_conv_s16 *r = check->record;
	const struct tinyml_window *const w = &r->window;
	const uint32_t outputs = tinyml_check_window(check, w, 2);
	const int32_t groups = r->groups == 0 ? w->in_c : r->groups;
	uint32_t elements, held;

	tinyml_check_that(check, groups > 0 && w->in_c % groups == 0 && w->out_c % groups == 0);
	if (check->wrong) {
		return 0;
	}
	elements = tinyml_check_times(tinyml_check_taps(w), (uint32_t)(w->in_c / groups));
	held = elements;
	if (r->groups == 0) { /* a channel is copied */
		tinyml_check_that(check, w->in_c == w->out_c);
		held = tinyml_check_plus(held,
					 tinyml_check_times((uint32_t)w->in_h, (uint32_t)w->in_w));
	}
	tinyml_check_writes(check, 2, tinyml_check_times(held, 2), 2);
	play_weighted_s16_filters(check, r->weights, r->bias, r->multiplier, r->shift, elements,
				  (uint32_t)w->out_c);
	return tinyml_check_times(outputs, tinyml_check_plus(elements, 1));
}

uint32_t tinyml_check_dense_s16(struct tinyml_check *check)
{
	const struct tinyml_play_dense_s16 *r = check->record;
	const uint32_t rows = (uint32_t)r->rows, inputs = (uint32_t)r->inputs;
	const uint32_t outputs = tinyml_check_times(rows, (uint32_t)r->outputs);

	tinyml_check_that(check, r->rows > 0 && r->inputs > 0 && r->outputs > 0);
	tinyml_check_reads(check, 0, tinyml_check_times(tinyml_check_times(rows, inputs), 2), 2);
	tinyml_check_writes(check, 1, tinyml_check_times(outputs, 2), 2);
	play_weighted_s16_filters(check, r->weights, r->bias, r->multiplier, r->shift, inputs,
				  (uint32_t)r->outputs);
	return tinyml_check_times(outputs, tinyml_check_plus(inputs, 1));
}
