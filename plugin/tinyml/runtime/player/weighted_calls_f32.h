/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Calls of float convolutions and dense layers, whose records are the same for both kinds of
 * weights: floats or, in a file with TINYML_HALF_WEIGHTS, float16 numbers.
 */

#ifndef TINYML_WEIGHTED_CALLS_F32_H_
#define TINYML_WEIGHTED_CALLS_F32_H_

#include <tinyml/play_records.h>

#include "../weighted/weight_f32.h"

#if TINYML_HALF_WEIGHTS

#include <tinyml/half_weights.h>

typedef struct tinyml_conv_f32_f16 weighted_calls_conv_layer;
typedef struct tinyml_conv_apart_f32_f16 weighted_calls_conv_apart_layer;
typedef struct tinyml_depthwise_conv_f32_f16 weighted_calls_depthwise_conv_layer;
typedef struct tinyml_dense_f32_f16 weighted_calls_dense_layer;

#else

#include <tinyml/dense.h>
#include <tinyml/depthwise_conv.h>

typedef struct tinyml_conv_f32 weighted_calls_conv_layer;
typedef struct tinyml_conv_apart_f32 weighted_calls_conv_apart_layer;
typedef struct tinyml_depthwise_conv_f32 weighted_calls_depthwise_conv_layer;
typedef struct tinyml_dense_f32 weighted_calls_dense_layer;

#endif

static weighted_calls_conv_layer
weighted_calls_parameters(const struct tinyml_play *play, const struct tinyml_play_conv_f32 *record)
{
	return (weighted_calls_conv_layer){
		.window = record->window,
		.groups = record->groups,
		.from_the_end = record->from_the_end != 0u,
		.out_min = record->out_min,
		.out_max = record->out_max,
		.weights = tinyml_play_table(play, record->weights),
		.bias = tinyml_play_table(play, record->bias),
	};
}

static void weighted_calls_conv(const struct tinyml_play *play)
{
	typedef void kernel(const weighted_calls_conv_layer *, const float *, float *);
	const weighted_calls_conv_layer p = weighted_calls_parameters(play, play->record);

	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1]);
}

static void weighted_calls_conv_apart(const struct tinyml_play *play)
{
	typedef void kernel(const weighted_calls_conv_apart_layer *, const float *, float *);
	const struct tinyml_play_conv_apart_f32 *record = play->record;
	const weighted_calls_conv_apart_layer p = {
		.conv = weighted_calls_parameters(play, &record->conv),
		.step = record->step,
		.line = record->line,
	};

	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1]);
}

static void weighted_calls_depthwise_conv(const struct tinyml_play *play)
{
	typedef void kernel(const weighted_calls_depthwise_conv_layer *, const float *, float *);
	const struct tinyml_play_conv_f32 *record = play->record;
	const weighted_calls_depthwise_conv_layer p = {
		.window = record->window,
		.out_min = record->out_min,
		.out_max = record->out_max,
		.weights = tinyml_play_table(play, record->weights),
		.bias = tinyml_play_table(play, record->bias),
	};

	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1]);
}

static void weighted_calls_dense(const struct tinyml_play *play)
{
	typedef void kernel(const weighted_calls_dense_layer *, const float *, float *);
	const struct tinyml_play_dense_f32 *record = play->record;
	const weighted_calls_dense_layer p = {
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

#endif /* TINYML_WEIGHTED_CALLS_F32_H_ */
