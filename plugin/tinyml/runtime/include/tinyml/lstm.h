/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Long short-term memory on quantised tensors: int8 input and output, int16 gates and cell state.
 */

#ifndef TINYML_LSTM_H_
#define TINYML_LSTM_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tinyml_scale {
	int32_t multiplier;
	int32_t shift;
};

struct tinyml_lstm_gate_s8 {
	const int8_t *weights;         /* (cells, inputs) */
	const int8_t *recurrent;       /* (cells, cells) */
	const int32_t *bias;           /* with the zero point of the input in it */
	const int32_t *recurrent_bias; /* with the zero point of the state in it */
	struct tinyml_scale scale;
	struct tinyml_scale recurrent_scale;
};

struct tinyml_lstm_s8 {
	int32_t steps;
	int32_t batches;
	int32_t inputs;
	int32_t cells;
	int32_t step_stride;                 /* rows from one step to the next */
	int32_t batch_stride;                /* rows from one batch to the next */
	struct tinyml_lstm_gate_s8 gates[4]; /* input, forget, cell, output */
	struct tinyml_scale hidden_scale;
	int32_t state_zero;
	int32_t cell_integer_bits;
	int32_t cell_limit;
};

/**
 * All steps of all batches; state and cell are updated. y may be NULL: then only the states remain.
 * gates holds 4 * cells elements.
 */
void tinyml_lstm_s8(const struct tinyml_lstm_s8 *p, const int8_t *x, int8_t *y, int8_t *state,
		    int16_t *cell, int16_t *gates);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_LSTM_H_ */
