/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Long short-term memory on real numbers, as TensorFlow Lite defines it. */

#ifndef TINYML_LSTM_F32_H_
#define TINYML_LSTM_F32_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tinyml_lstm_gate_f32 {
	const float *weights;   /* (cells, inputs); NULL in the input gate: it is 1 - forget gate */
	const float *recurrent; /* (cells, outputs) */
	const float *bias;      /* (cells) */
	const float *peephole;  /* (cells), or NULL */
};

struct tinyml_lstm_f32 {
	int32_t steps;
	int32_t batches;
	int32_t inputs;
	int32_t cells;
	int32_t outputs;                      /* cells, if there is no projection */
	int32_t step_stride;                  /* rows from one step to the next */
	int32_t batch_stride;                 /* rows from one batch to the next */
	struct tinyml_lstm_gate_f32 gates[4]; /* input, forget, cell, output */
	float cell_clip;                      /* 0: none */
	float projection_clip;                /* 0: none */
	const float *projection;              /* (outputs, cells), or NULL */
	const float *projection_bias;         /* (outputs), or NULL */
};

/**
 * All steps of all batches; state and cell are updated. y may be NULL: then only the states remain.
 * gates holds 4 * cells elements.
 */
void tinyml_lstm_f32(const struct tinyml_lstm_f32 *p, const float *x, float *y, float *state,
		     float *cell, float *gates);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_LSTM_F32_H_ */
