/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* RNN, GRU and LSTM of float. */

#include <stddef.h>

#include <tinyml/play_records.h>
#include <tinyml/recurrent.h>

enum { X, H0, C0, Y, H_LAST, C_LAST, SCRATCH };

typedef float play_recurrent_f32_function(float x, float alpha, float beta);

static play_recurrent_f32_function *const play_recurrent_f32_functions[TINYML_PLAY_ACTIVATIONS] = {
	[TINYML_PLAY_SIGMOID] = tinyml_act_sigmoid,
	[TINYML_PLAY_TANH] = tinyml_act_tanh,
	[TINYML_PLAY_RELU] = tinyml_act_relu,
	[TINYML_PLAY_AFFINE] = tinyml_act_affine,
	[TINYML_PLAY_LEAKY_RELU] = tinyml_act_leaky_relu,
	[TINYML_PLAY_THRESHOLDED_RELU] = tinyml_act_thresholded_relu,
	[TINYML_PLAY_SCALED_TANH] = tinyml_act_scaled_tanh,
	[TINYML_PLAY_HARD_SIGMOID] = tinyml_act_hard_sigmoid,
	[TINYML_PLAY_ELU] = tinyml_act_elu,
	[TINYML_PLAY_SOFTSIGN] = tinyml_act_softsign,
	[TINYML_PLAY_SOFTPLUS] = tinyml_act_softplus,
};

static struct tinyml_matrix play_recurrent_f32_matrix(const struct tinyml_play *play,
						      uint32_t values, uint32_t scales)
{
	return (struct tinyml_matrix){
		.add_product = scales != 0u ? tinyml_add_product_f32_s8 : tinyml_add_product_f32,
		.values = tinyml_play_table(play, values),
		.scales = tinyml_play_table(play, scales),
	};
}

void tinyml_play_recurrent_f32(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_recurrent *);
	const struct tinyml_play_recurrent *record = play->record;
	const struct tinyml_recurrent p = {
		.steps = record->steps,
		.batches = record->batches,
		.inputs = record->inputs,
		.hidden = record->hidden,
		.reverse = record->reverse != 0u,
		.linear_before_reset = record->linear_before_reset != 0u,
		.input_forget = record->input_forget != 0u,
		.clip = record->clip,
		.f = {play_recurrent_f32_functions[record->f], record->f_alpha, record->f_beta},
		.g = {play_recurrent_f32_functions[record->g], record->g_alpha, record->g_beta},
		.h = {play_recurrent_f32_functions[record->h], record->h_alpha, record->h_beta},
		.w = play_recurrent_f32_matrix(play, record->w, record->w_scales),
		.r = play_recurrent_f32_matrix(play, record->r, record->r_scales),
		.x = play->operand[X],
		.b = tinyml_play_table(play, record->b),
		.peepholes = tinyml_play_table(play, record->peepholes),
		.h0 = play->operand[H0],
		.c0 = play->operand[C0],
		.y = play->operand[Y],
		.h_last = play->operand[H_LAST],
		.c_last = play->operand[C_LAST],
		.scratch = play->operand[SCRATCH],
	};

	((kernel *)play->kernel->function)(&p);
}

/* A matrix of `rows` filters, of float, or of bytes with a scale each. */
static void play_recurrent_f32_weights(struct tinyml_check *check, uint32_t values, uint32_t scales,
				       uint32_t rows, uint32_t columns)
{
	const uint32_t count = tinyml_check_times(rows, columns);

	tinyml_check_that(check, values != 0u);
	if (scales != 0u) {
		tinyml_check_constants(check, values, count, 1);
		tinyml_check_constants(check, scales, tinyml_check_times(rows, 4), 4);
	} else {
		tinyml_check_constants(check, values, tinyml_check_times(count, 4), 4);
	}
}

static uint32_t play_recurrent_f32_check(struct tinyml_check *check, uint32_t gates)
{
	const struct tinyml_play_recurrent *r = check->record;
	const uint32_t inputs = (uint32_t)r->inputs, hidden = (uint32_t)r->hidden;
	const uint32_t rows = tinyml_check_times((uint32_t)r->steps, (uint32_t)r->batches);
	const uint32_t state =
		tinyml_check_times(tinyml_check_times((uint32_t)r->batches, hidden), 4);
	const uint32_t outputs = tinyml_check_times(tinyml_check_times(rows, hidden), 4);
	const uint32_t all = tinyml_check_times(gates, hidden);

	tinyml_check_that(check, r->steps > 0 && r->batches > 0 && r->inputs > 0 && r->hidden > 0 &&
					 r->hidden <= INT16_MAX && r->inputs <= INT16_MAX &&
					 r->f < TINYML_PLAY_ACTIVATIONS &&
					 r->g < TINYML_PLAY_ACTIVATIONS &&
					 r->h < TINYML_PLAY_ACTIVATIONS);
	if (check->wrong) {
		return 0;
	}
	tinyml_check_reads(check, X, tinyml_check_times(tinyml_check_times(rows, inputs), 4), 4);
	tinyml_check_writes(check, H_LAST, state, 4);
	tinyml_check_writes(check, SCRATCH, tinyml_check_times(all, 4), 4);
	if (!tinyml_check_nothing(check, H0)) {
		tinyml_check_reads(check, H0, state, 4);
	}
	if (!tinyml_check_nothing(check, C0)) {
		tinyml_check_reads(check, C0, state, 4);
	}
	if (!tinyml_check_nothing(check, Y)) {
		tinyml_check_writes(check, Y, outputs, 4);
	}
	if (gates == 4u) { /* LSTM */
		tinyml_check_writes(check, C_LAST, state, 4);
	} else if (!tinyml_check_nothing(check, C_LAST)) {
		tinyml_check_writes(check, C_LAST, state, 4);
	}
	play_recurrent_f32_weights(check, r->w, r->w_scales, all, inputs);
	play_recurrent_f32_weights(check, r->r, r->r_scales, all, hidden);
	if (r->b != 0u) {
		tinyml_check_constants(check, r->b, tinyml_check_times(all, 8), 4);
	}
	if (r->peepholes != 0u) {
		tinyml_check_constants(check, r->peepholes, tinyml_check_times(hidden, 12), 4);
	}
	return tinyml_check_times(
		rows,
		tinyml_check_times(all, tinyml_check_plus(tinyml_check_plus(inputs, hidden), 16)));
}

uint32_t tinyml_check_rnn_f32(struct tinyml_check *check)
{
	return play_recurrent_f32_check(check, 1);
}

uint32_t tinyml_check_gru_f32(struct tinyml_check *check)
{
	return play_recurrent_f32_check(check, 3);
}

uint32_t tinyml_check_recurrent_lstm_f32(struct tinyml_check *check)
{
	return play_recurrent_f32_check(check, 4);
}
