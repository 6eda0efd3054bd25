/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Recurrent layers in float: RNN, GRU and LSTM, one direction, any number of batches. */

#ifndef TINYML_RECURRENT_H_
#define TINYML_RECURRENT_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An activation function and its two parameters, which most functions ignore. */
struct tinyml_activation {
	float (*function)(float x, float alpha, float beta);
	float alpha;
	float beta;
};

float tinyml_act_sigmoid(float x, float alpha, float beta);
float tinyml_act_tanh(float x, float alpha, float beta);
float tinyml_act_relu(float x, float alpha, float beta);
float tinyml_act_affine(float x, float alpha, float beta);
float tinyml_act_leaky_relu(float x, float alpha, float beta);
float tinyml_act_thresholded_relu(float x, float alpha, float beta);
float tinyml_act_scaled_tanh(float x, float alpha, float beta);
float tinyml_act_hard_sigmoid(float x, float alpha, float beta);
float tinyml_act_elu(float x, float alpha, float beta);
float tinyml_act_softsign(float x, float alpha, float beta);
float tinyml_act_softplus(float x, float alpha, float beta);

/** Weights, and how to multiply by them: floats, or bytes with one scale per row. */
struct tinyml_matrix {
	/** y += rows of w from `row` on, times x; each row is `columns` long. Only whole gates. */
	void (*add_product)(float *y, const struct tinyml_matrix *w, int32_t row, const float *x,
			    int32_t rows, int32_t columns);
	const void *values;
	const float *scales; /* only for bytes */
	int32_t gate_rows;   /* only for tiles: the rows of each gate are laid out as filters_f32.h
				says */
};

void tinyml_add_product_f32(float *y, const struct tinyml_matrix *w, int32_t row, const float *x,
			    int32_t rows, int32_t columns);
void tinyml_add_product_tiles_f32(float *y, const struct tinyml_matrix *w, int32_t row,
				  const float *x, int32_t rows, int32_t columns);
void tinyml_add_product_f32_s8(float *y, const struct tinyml_matrix *w, int32_t row, const float *x,
			       int32_t rows, int32_t columns);

/** A layer and its tensors. Pointers that can be NULL are marked. */
struct tinyml_recurrent {
	int32_t steps;
	int32_t batches;
	int32_t inputs;
	int32_t hidden;
	bool reverse;             /* from the last step to the first */
	bool linear_before_reset; /* GRU: the reset gate is applied after the matrix */
	bool input_forget;        /* LSTM: the forget gate is 1 - input gate */
	float clip;               /* largest magnitude that reaches an activation; 0: no limit */
	struct tinyml_activation f, g, h;

	struct tinyml_matrix w; /* (gates * hidden, inputs) */
	struct tinyml_matrix r; /* (gates * hidden, hidden) */
	const float *x;         /* (steps, batches, inputs) */
	const float *b;         /* (2 * gates * hidden): for w, then for r; or NULL */
	const float *peepholes; /* LSTM: (3 * hidden); or NULL */
	const int32_t *lengths; /* steps of each batch; NULL: all */
	const float *h0;        /* (batches, hidden); NULL: zeros */
	const float *c0;        /* LSTM: (batches, hidden); NULL: zeros */

	float *y;       /* (steps, batches, hidden); or NULL */
	float *h_last;  /* (batches, hidden) */
	float *c_last;  /* LSTM: (batches, hidden) */
	float *scratch; /* gates * hidden */
};

/** Gates in the order of ONNX: one for RNN; update, reset, hidden; input, output, forget, cell. */
void tinyml_rnn_f32(const struct tinyml_recurrent *p);
void tinyml_gru_f32(const struct tinyml_recurrent *p);
void tinyml_recurrent_lstm_f32(const struct tinyml_recurrent *p);

/** One step of one batch: reads x, updates h (and c). */
typedef void (*tinyml_cell)(const struct tinyml_recurrent *p, const float *x, float *h, float *c);

/** Runs a cell over all steps and batches. */
void tinyml_recurrent_run(const struct tinyml_recurrent *p, tinyml_cell cell);

/** y = the biases of `rows` gates from gate row `first` on; `gates` is the total number of rows. */
void tinyml_start_gates(float *y, const struct tinyml_recurrent *p, int32_t first, int32_t rows,
			int32_t gates);

static inline float tinyml_activate(const struct tinyml_recurrent *p, struct tinyml_activation a,
				    float x)
{
	if (p->clip > 0.0f) {
		x = x > p->clip ? p->clip : x;
		x = x < -p->clip ? -p->clip : x;
	}
	return a.function(x, a.alpha, a.beta);
}

#ifdef __cplusplus
}
#endif

#endif /* TINYML_RECURRENT_H_ */
