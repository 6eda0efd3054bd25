/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions, depthwise convolutions and dense layers of float. */

#include <stddef.h>
#include <string.h>

#include <tinyml/dense.h>
#include <tinyml/depthwise_conv.h>
#include <tinyml/play_records.h>

#include "weighted_checks_f32.h"

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

uint32_t tinyml_check_conv_f32(struct tinyml_check *check)
{
	return weighted_checks_conv(check);
}

uint32_t tinyml_check_conv_apart_f32(struct tinyml_check *check)
{
	return weighted_checks_conv_apart(check);
}

uint32_t tinyml_check_depthwise_conv_f32(struct tinyml_check *check)
{
	return weighted_checks_depthwise(check);
}

uint32_t tinyml_check_dense_f32(struct tinyml_check *check)
{
	return weighted_checks_dense(check);
}
