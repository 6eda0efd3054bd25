/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** The records of recurrent layers. */

#ifndef TINYML_PLAY_RECURRENT_H_
#define TINYML_PLAY_RECURRENT_H_

#include <tinyml/play.h>

#ifdef __cplusplus
extern "C" {
#endif

enum tinyml_play_activation {
	TINYML_PLAY_SIGMOID,
	TINYML_PLAY_TANH,
	TINYML_PLAY_RELU,
	TINYML_PLAY_AFFINE,
	TINYML_PLAY_LEAKY_RELU,
	TINYML_PLAY_THRESHOLDED_RELU,
	TINYML_PLAY_SCALED_TANH,
	TINYML_PLAY_HARD_SIGMOID,
	TINYML_PLAY_ELU,
	TINYML_PLAY_SOFTSIGN,
	TINYML_PLAY_SOFTPLUS,
	TINYML_PLAY_ACTIVATIONS,
};

/** struct tinyml_recurrent without lengths. Operands: x, h0, c0, y, h_last, c_last, scratch. */
struct tinyml_play_recurrent {
	int32_t steps;
	int32_t batches;
	int32_t inputs;
	int32_t hidden;
	float clip;
	float f_alpha;
	float f_beta;
	float g_alpha;
	float g_beta;
	float h_alpha;
	float h_beta;
	uint32_t w;
	uint32_t w_scales; /* 0: weights are float */
	uint32_t r;
	uint32_t r_scales;
	uint32_t b;         /* 0: none */
	uint32_t peepholes; /* 0: none */
	uint8_t f;          /* enum tinyml_play_activation */
	uint8_t g;
	uint8_t h;
	uint8_t reverse;
	uint8_t linear_before_reset;
	uint8_t input_forget;
	uint8_t unused[2];
};

/** struct tinyml_recurrent_s8. Operands: x, h0, c0, y, h, c, scratch. */
struct tinyml_play_recurrent_s8 {
	int32_t steps;
	int32_t batches;
	int32_t inputs;
	int32_t hidden;
	uint32_t w;
	uint32_t r;
	uint32_t rows;
	uint32_t again; /* 0: none */
	int16_t out_factor;
	int8_t out_shift;
	int8_t out_zero;
	int8_t x_left;
	int8_t h_left;
	int8_t cell_bits;
	uint8_t reverse;
};

struct tinyml_play_lstm_gate_s8 {
	uint32_t weights;
	uint32_t recurrent;
	uint32_t bias;
	uint32_t recurrent_bias;
	int32_t multiplier;
	int32_t shift;
	int32_t recurrent_multiplier;
	int32_t recurrent_shift;
};

/** Operands of both: x, y, state, cell, scratch. */
struct tinyml_play_lstm_s8 {
	int32_t steps;
	int32_t batches;
	int32_t inputs;
	int32_t cells;
	int32_t step_stride;
	int32_t batch_stride;
	struct tinyml_play_lstm_gate_s8 gates[4];
	int32_t hidden_multiplier;
	int32_t hidden_shift;
	int32_t state_zero;
	int32_t cell_integer_bits;
	int32_t cell_limit;
};

struct tinyml_play_lstm_gate_f32 {
	uint32_t weights; /* 0 in the input gate: it is 1 - forget gate */
	uint32_t recurrent;
	uint32_t bias;
	uint32_t peephole; /* 0: none */
};

struct tinyml_play_lstm_f32 {
	int32_t steps;
	int32_t batches;
	int32_t inputs;
	int32_t cells;
	int32_t outputs;
	int32_t step_stride;
	int32_t batch_stride;
	struct tinyml_play_lstm_gate_f32 gates[4];
	float cell_clip;
	float projection_clip;
	uint32_t projection;      /* 0: none */
	uint32_t projection_bias; /* 0: none */
};

/* What the player calls, and what it checks. */

void tinyml_play_recurrent_f32(const struct tinyml_play *play);
void tinyml_play_recurrent_s8(const struct tinyml_play *play);
void tinyml_play_lstm_s8(const struct tinyml_play *play);
void tinyml_play_lstm_f32(const struct tinyml_play *play);
uint32_t tinyml_check_rnn_f32(struct tinyml_check *check);
uint32_t tinyml_check_gru_f32(struct tinyml_check *check);
uint32_t tinyml_check_recurrent_lstm_f32(struct tinyml_check *check);
uint32_t tinyml_check_rnn_s8(struct tinyml_check *check);
uint32_t tinyml_check_gru_s8(struct tinyml_check *check);
uint32_t tinyml_check_recurrent_lstm_s8(struct tinyml_check *check);
uint32_t tinyml_check_rnn_dsp_s8(struct tinyml_check *check);
uint32_t tinyml_check_gru_dsp_s8(struct tinyml_check *check);
uint32_t tinyml_check_recurrent_lstm_dsp_s8(struct tinyml_check *check);
uint32_t tinyml_check_rnn_mve_s8(struct tinyml_check *check);
uint32_t tinyml_check_gru_mve_s8(struct tinyml_check *check);
uint32_t tinyml_check_recurrent_lstm_mve_s8(struct tinyml_check *check);
uint32_t tinyml_check_lstm_s8(struct tinyml_check *check);
uint32_t tinyml_check_lstm_f32(struct tinyml_check *check);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_PLAY_RECURRENT_H_ */
