/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* RNN, GRU and LSTM of int8, as quantised ONNX models have them. */

#include <stdbool.h>
#include <stddef.h>

#include <tinyml/play_records.h>
#include <tinyml/recurrent_s8.h>

enum { X, H0, C0, Y, H, C, SCRATCH };
enum { RNN = 1, GRU = 3, LSTM = 4 }; /* their gates */

#define ROWS 4u /* of a group */

void tinyml_play_recurrent_s8(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_recurrent_s8 *,
			    const struct tinyml_recurrent_tensors *);
	const struct tinyml_play_recurrent_s8 *record = play->record;
	const struct tinyml_recurrent_s8 p = {
		.steps = record->steps,
		.batches = record->batches,
		.inputs = record->inputs,
		.hidden = record->hidden,
		.w = tinyml_play_table(play, record->w),
		.r = tinyml_play_table(play, record->r),
		.rows = tinyml_play_table(play, record->rows),
		.again = tinyml_play_table(play, record->again),
		.out_factor = record->out_factor,
		.out_shift = record->out_shift,
		.out_zero = record->out_zero,
		.x_left = record->x_left,
		.h_left = record->h_left,
		.cell_bits = record->cell_bits,
		.reverse = record->reverse != 0u,
	};
	const struct tinyml_recurrent_tensors t = {
		.x = play->operand[X],
		.h0 = play->operand[H0],
		.c0 = play->operand[C0],
		.y = play->operand[Y],
		.h = play->operand[H],
		.c = play->operand[C],
		.scratch = play->operand[SCRATCH],
	};

	((kernel *)play->kernel->function)(&p, &t);
}

/* Operands beside the input and scratch memory: `state` elements each, `outputs` of all steps. */
static void play_recurrent_s8_states(struct tinyml_check *check, uint32_t gates, uint32_t state,
				     uint32_t outputs)
{
	const uint32_t wide = tinyml_check_times(state, 2);

	if (!tinyml_check_nothing(check, H0)) {
		tinyml_check_reads(check, H0, gates == GRU ? wide : state, gates == GRU ? 2 : 1);
	}
	if (!tinyml_check_nothing(check, C0)) {
		tinyml_check_that(check, gates == LSTM);
		tinyml_check_reads(check, C0, wide, 2);
	}
	if (!tinyml_check_nothing(check, Y)) {
		tinyml_check_writes(check, Y, outputs, 1);
	}
	if (!tinyml_check_nothing(check, H)) {
		tinyml_check_writes(check, H, state, 1);
	}
	if (gates == LSTM || !tinyml_check_nothing(check, C)) {
		tinyml_check_that(check, gates != RNN);
		tinyml_check_writes(check, C, wide, 2);
	}
}

/* Of kernels whose copies are of bytes, and of those with one table of all that a group has. `x`
 * and `h`: elements of rows. */
static void play_recurrent_s8_tables(struct tinyml_check *check, bool one, uint32_t elements,
				     uint32_t x, uint32_t h)
{
	const struct tinyml_play_recurrent_s8 *r = check->record;

	if (one) {
		tinyml_check_that(check, r->w != 0u && r->x_left >= 8 && r->h_left == 8 &&
						 r->out_shift >= 16);
		tinyml_check_constants(check, r->w, tinyml_check_times(elements, x + h + 12u), 4);
		return;
	}
	tinyml_check_that(check, r->w != 0u && r->r != 0u && r->rows != 0u);
	tinyml_check_constants(check, r->w, tinyml_check_times(elements, x), 4);
	tinyml_check_constants(check, r->r, tinyml_check_times(elements, h), 4);
	tinyml_check_constants(check, r->rows, elements * 12u, 4);
}

/* `padding`: elements of a copy are a multiple of it; `size`: bytes of each. */
static uint32_t play_recurrent_s8_check(struct tinyml_check *check, uint32_t gates,
					uint32_t padding, uint32_t size)
{
	const struct tinyml_play_recurrent_s8 *r = check->record;
	const uint32_t steps = tinyml_check_times((uint32_t)r->steps, (uint32_t)r->batches);
	const uint32_t inputs = (uint32_t)r->inputs, hidden = (uint32_t)r->hidden;
	const uint32_t x = (inputs + padding - 1u) & ~(padding - 1u);
	const uint32_t h = (hidden + padding - 1u) & ~(padding - 1u);
	const uint32_t update = size == 2u ? h : hidden;

	tinyml_check_that(check, r->steps > 0 && r->batches > 0 && r->inputs > 0 &&
					 r->inputs <= INT16_MAX && r->hidden > 0 &&
					 r->hidden <= INT16_MAX && r->out_shift >= 1 &&
					 r->out_shift <= 23 && r->x_left >= 0 && r->x_left <= 16 &&
					 r->h_left >= 0 && r->h_left <= 16 && r->cell_bits >= 0 &&
					 r->cell_bits <= 15);
	if (check->wrong) {
		return 0;
	}
	tinyml_check_reads(check, X, tinyml_check_times(steps, inputs), 1);
	play_recurrent_s8_states(check, gates, tinyml_check_times((uint32_t)r->batches, hidden),
				 tinyml_check_times(steps, hidden));
	tinyml_check_writes(check, SCRATCH,
			    size * (x + (gates == GRU ? 3u : 2u) * h) +
				    (gates == GRU ? 2u * (hidden + update) : 0u),
			    4);
	play_recurrent_s8_tables(check, size == 2u, (hidden + ROWS - 1u) / ROWS * gates * ROWS, x,
				 h);
	if (gates == GRU && r->again != 0u) {
		tinyml_check_constants(check, r->again, 4u * hidden, 4);
	}
	return tinyml_check_times(
		steps, tinyml_check_times(gates * (hidden + ROWS - 1u), inputs + hidden + 46u));
}

uint32_t tinyml_check_rnn_s8(struct tinyml_check *check)
{
	return play_recurrent_s8_check(check, RNN, 4, 1);
}

uint32_t tinyml_check_gru_s8(struct tinyml_check *check)
{
	return play_recurrent_s8_check(check, GRU, 4, 1);
}

uint32_t tinyml_check_recurrent_lstm_s8(struct tinyml_check *check)
{
	return play_recurrent_s8_check(check, LSTM, 4, 1);
}

uint32_t tinyml_check_rnn_dsp_s8(struct tinyml_check *check)
{
	return play_recurrent_s8_check(check, RNN, 4, 2);
}

uint32_t tinyml_check_gru_dsp_s8(struct tinyml_check *check)
{
	return play_recurrent_s8_check(check, GRU, 4, 2);
}

uint32_t tinyml_check_recurrent_lstm_dsp_s8(struct tinyml_check *check)
{
	return play_recurrent_s8_check(check, LSTM, 4, 2);
}

uint32_t tinyml_check_rnn_mve_s8(struct tinyml_check *check)
{
	return play_recurrent_s8_check(check, RNN, 16, 1);
}

uint32_t tinyml_check_gru_mve_s8(struct tinyml_check *check)
{
	return play_recurrent_s8_check(check, GRU, 16, 1);
}

uint32_t tinyml_check_recurrent_lstm_mve_s8(struct tinyml_check *check)
{
	return play_recurrent_s8_check(check, LSTM, 16, 1);
}
