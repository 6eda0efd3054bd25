/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* LSTM as TensorFlow Lite defines it, of int8 and of float. */

#include <stddef.h>

#include <tinyml/lstm.h>
#include <tinyml/lstm_f32.h>

#include "nest.h"

enum { X, Y, STATE, CELL, SCRATCH };

void tinyml_play_lstm_s8(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_lstm_s8 *, const int8_t *, int8_t *, int8_t *,
			    int16_t *, int16_t *);
	const struct tinyml_play_lstm_s8 *record = play->record;
	struct tinyml_lstm_s8 p = {
		.steps = record->steps,
		.batches = record->batches,
		.inputs = record->inputs,
		.cells = record->cells,
		.step_stride = record->step_stride,
		.batch_stride = record->batch_stride,
		.hidden_scale = {record->hidden_multiplier, record->hidden_shift},
		.state_zero = record->state_zero,
		.cell_integer_bits = record->cell_integer_bits,
		.cell_limit = record->cell_limit,
	};

	for (uint32_t i = 0; i < 4u; i++) {
		const struct tinyml_play_lstm_gate_s8 *const gate = &record->gates[i];

		p.gates[i] = (struct tinyml_lstm_gate_s8){
			.weights = tinyml_play_table(play, gate->weights),
			.recurrent = tinyml_play_table(play, gate->recurrent),
			.bias = tinyml_play_table(play, gate->bias),
			.recurrent_bias = tinyml_play_table(play, gate->recurrent_bias),
			.scale = {gate->multiplier, gate->shift},
			.recurrent_scale = {gate->recurrent_multiplier, gate->recurrent_shift},
		};
	}
	((kernel *)play->kernel->function)(&p, play->operand[X], play->operand[Y],
					   play->operand[STATE], play->operand[CELL],
					   play->operand[SCRATCH]);
}

void tinyml_play_lstm_f32(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_lstm_f32 *, const float *, float *, float *,
			    float *, float *);
	const struct tinyml_play_lstm_f32 *record = play->record;
	struct tinyml_lstm_f32 p = {
		.steps = record->steps,
		.batches = record->batches,
		.inputs = record->inputs,
		.cells = record->cells,
		.outputs = record->outputs,
		.step_stride = record->step_stride,
		.batch_stride = record->batch_stride,
		.cell_clip = record->cell_clip,
		.projection_clip = record->projection_clip,
		.projection = tinyml_play_table(play, record->projection),
		.projection_bias = tinyml_play_table(play, record->projection_bias),
	};

	for (uint32_t i = 0; i < 4u; i++) {
		const struct tinyml_play_lstm_gate_f32 *const gate = &record->gates[i];

		p.gates[i] = (struct tinyml_lstm_gate_f32){
			.weights = tinyml_play_table(play, gate->weights),
			.recurrent = tinyml_play_table(play, gate->recurrent),
			.bias = tinyml_play_table(play, gate->bias),
			.peephole = tinyml_play_table(play, gate->peephole),
		};
	}
	((kernel *)play->kernel->function)(&p, play->operand[X], play->operand[Y],
					   play->operand[STATE], play->operand[CELL],
					   play->operand[SCRATCH]);
}

/* Rows of a sequence: the number of the last one, plus 1. */
static uint32_t play_lstm_rows(struct tinyml_check *check, int32_t steps, int32_t batches,
			       int32_t step_stride, int32_t batch_stride)
{
	tinyml_check_that(check, steps > 0 && batches > 0 && step_stride >= 0 && batch_stride >= 0);
	if (check->wrong) {
		return 0;
	}
	return tinyml_check_plus(
		tinyml_check_plus(
			tinyml_check_times((uint32_t)steps - 1u, (uint32_t)step_stride),
			tinyml_check_times((uint32_t)batches - 1u, (uint32_t)batch_stride)),
		1);
}

/* The operands, whose elements have these sizes. Returns the work. */
static uint32_t play_lstm_operands(struct tinyml_check *check, uint32_t rows, uint32_t batches,
				   uint32_t inputs, uint32_t outputs, uint32_t cells, uint32_t size,
				   uint32_t cell_size)
{
	const uint32_t y = tinyml_check_times(tinyml_check_times(rows, outputs), size);

	tinyml_check_reads(check, X, tinyml_check_times(tinyml_check_times(rows, inputs), size),
			   size);
	if (!tinyml_check_nothing(check, Y)) {
		tinyml_check_writes(check, Y, y, size);
	}
	tinyml_check_writes(check, STATE,
			    tinyml_check_times(tinyml_check_times(batches, outputs), size), size);
	tinyml_check_writes(check, CELL,
			    tinyml_check_times(tinyml_check_times(batches, cells), cell_size),
			    cell_size);
	tinyml_check_writes(check, SCRATCH, tinyml_check_times(cells, 4u * cell_size), cell_size);
	return tinyml_check_times(tinyml_check_times(cells, 4),
				  tinyml_check_plus(tinyml_check_plus(inputs, outputs), 16));
}

uint32_t tinyml_check_lstm_s8(struct tinyml_check *check)
{
	const struct tinyml_play_lstm_s8 *r = check->record;
	const uint32_t rows =
		play_lstm_rows(check, r->steps, r->batches, r->step_stride, r->batch_stride);
	const uint32_t inputs = (uint32_t)r->inputs, cells = (uint32_t)r->cells;
	const uint32_t turns = tinyml_check_times((uint32_t)r->steps, (uint32_t)r->batches);

	tinyml_check_that(check,
			  r->inputs > 0 && r->inputs <= INT16_MAX && r->cells > 0 &&
				  r->cells <= INT16_MAX &&
				  tinyml_check_factor(r->hidden_multiplier, r->hidden_shift) &&
				  r->state_zero >= INT8_MIN && r->state_zero <= INT8_MAX &&
				  r->cell_integer_bits >= 0 && r->cell_integer_bits <= 6 &&
				  r->cell_limit >= 0 && r->cell_limit <= INT16_MAX);
	if (check->wrong) {
		return 0;
	}
	for (uint32_t i = 0; i < 4u; i++) {
		const struct tinyml_play_lstm_gate_s8 *const gate = &r->gates[i];

		tinyml_check_that(check, tinyml_check_factor(gate->multiplier, gate->shift) &&
						 tinyml_check_factor(gate->recurrent_multiplier,
								     gate->recurrent_shift) &&
						 gate->weights != 0u && gate->recurrent != 0u &&
						 gate->bias != 0u && gate->recurrent_bias != 0u);
		tinyml_check_constants(check, gate->weights, tinyml_check_times(cells, inputs), 1);
		tinyml_check_constants(check, gate->recurrent, tinyml_check_times(cells, cells), 1);
		tinyml_check_constants(check, gate->bias, tinyml_check_times(cells, 4), 4);
		tinyml_check_constants(check, gate->recurrent_bias, tinyml_check_times(cells, 4),
				       4);
	}
	return tinyml_check_times(turns, play_lstm_operands(check, rows, (uint32_t)r->batches,
							    inputs, cells, cells, 1, 2));
}

/* A table of float unless it is NULL. */
static void play_lstm_floats(struct tinyml_check *check, uint32_t position, uint32_t count)
{
	if (position != 0u) {
		tinyml_check_constants(check, position, tinyml_check_times(count, 4), 4);
	}
}

uint32_t tinyml_check_lstm_f32(struct tinyml_check *check)
{
	const struct tinyml_play_lstm_f32 *r = check->record;
	const uint32_t rows =
		play_lstm_rows(check, r->steps, r->batches, r->step_stride, r->batch_stride);
	const uint32_t inputs = (uint32_t)r->inputs, cells = (uint32_t)r->cells;
	const uint32_t outputs = (uint32_t)r->outputs;
	const uint32_t turns = tinyml_check_times((uint32_t)r->steps, (uint32_t)r->batches);
	uint32_t work;

	tinyml_check_that(check, r->inputs > 0 && r->inputs <= INT16_MAX && r->cells > 0 &&
					 r->cells <= INT16_MAX && r->outputs > 0 &&
					 r->outputs <= INT16_MAX &&
					 (r->projection != 0u || r->outputs == r->cells));
	if (check->wrong) {
		return 0;
	}
	for (uint32_t i = 0; i < 4u; i++) {
		const struct tinyml_play_lstm_gate_f32 *const gate = &r->gates[i];

		if (gate->weights != 0u) {
			tinyml_check_that(check, gate->recurrent != 0u && gate->bias != 0u);
			play_lstm_floats(check, gate->weights, tinyml_check_times(cells, inputs));
			play_lstm_floats(check, gate->recurrent,
					 tinyml_check_times(cells, outputs));
			play_lstm_floats(check, gate->bias, cells);
		}
		play_lstm_floats(check, gate->peephole, cells);
	}
	play_lstm_floats(check, r->projection, tinyml_check_times(outputs, cells));
	play_lstm_floats(check, r->projection_bias, outputs);
	work = play_lstm_operands(check, rows, (uint32_t)r->batches, inputs, outputs, cells, 4, 4);
	return tinyml_check_times(turns,
				  tinyml_check_plus(work, tinyml_check_times(outputs, cells)));
}
