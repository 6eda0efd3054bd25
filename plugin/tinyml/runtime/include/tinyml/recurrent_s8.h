/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * RNN, GRU and LSTM of quantised ONNX models, one direction: int8 input, output and weights, int16
 * gates, cells, and states of GRU.
 */

#ifndef TINYML_RECURRENT_S8_H_
#define TINYML_RECURRENT_S8_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * What is the same in every run. Rows of the matrices come in groups: the same gate of four
 * neighbouring cells. Groups are ordered by cells, then by gates in the order of ONNX; missing
 * cells have zeros. How the weights of a group are ordered depends on the kernel.
 *
 * A gate is (high(sum_x << x_left, x_factor) + high(sum_h << h_left, h_factor) + bias) >> 3, where
 * high() is the high word of a product; it is saturated to int16, in units of 2^-12.
 */
struct tinyml_recurrent_s8 {
	int32_t steps;
	int32_t batches;
	int32_t inputs;
	int32_t hidden;
	const void *w;        /* input weights; with DSP instructions, all of a group */
	const void *r;        /* recurrent weights */
	const int32_t *rows;  /* for each group 4 biases, 4 x_factors, 4 h_factors */
	const int32_t *again; /* GRU, linear_before_reset: biases of the recurrent sums; or NULL */
	int16_t out_factor;   /* from units of 2^-15 to the output: a factor, then a shift */
	int8_t out_shift;
	int8_t out_zero;
	int8_t x_left;
	int8_t h_left;
	int8_t cell_bits; /* LSTM: integer bits of the cell state */
	bool reverse;     /* from the last step to the first */
};

struct tinyml_recurrent_tensors {
	const int8_t *x; /* (steps, batches, inputs) */
	const void *h0;  /* (batches, hidden): int8, for GRU int16 in units of 2^-15; NULL: zeros */
	const int16_t *c0; /* LSTM: (batches, hidden); NULL: zeros */
	int8_t *y;         /* (steps, batches, hidden); or NULL */
	int8_t *h;         /* the last state; GRU: or NULL */
	int16_t *c;        /* LSTM: the last cell state; GRU: the last state, or NULL */
	void *scratch;     /* see the kernel's class in ops/recurrent/recurrent_kernels.py */
};

/** Plain C. Four rows of a group: elements 0 to 3 of each, then elements 4 to 7 of each, ... */
void tinyml_rnn_s8(const struct tinyml_recurrent_s8 *p, const struct tinyml_recurrent_tensors *t);
void tinyml_gru_s8(const struct tinyml_recurrent_s8 *p, const struct tinyml_recurrent_tensors *t);
void tinyml_recurrent_lstm_s8(const struct tinyml_recurrent_s8 *p,
			      const struct tinyml_recurrent_tensors *t);

/**
 * For cores with DSP instructions. Two rows p and q are int16, 256 * p + q; of every four elements,
 * 0 and 2 of the first two rows, of the last two, then 1 and 3 of both. Sums of p are within 24
 * bits, x_left is at least 8, h_left is 8, and out_shift at least 16. One table, `w`, has of each
 * group its input weights, 4 biases, 4 x_factors, its recurrent weights and 4 h_factors; r and rows
 * are NULL. Groups of GRU are ordered by gates, then by cells.
 */
void tinyml_rnn_dsp_s8(const struct tinyml_recurrent_s8 *p,
		       const struct tinyml_recurrent_tensors *t);
void tinyml_gru_dsp_s8(const struct tinyml_recurrent_s8 *p,
		       const struct tinyml_recurrent_tensors *t);
void tinyml_recurrent_lstm_dsp_s8(const struct tinyml_recurrent_s8 *p,
				  const struct tinyml_recurrent_tensors *t);

/**
 * For cores with Helium: elements 0 to 15 of each row, then elements 16 to 31 of each, ... The last
 * gates of GRU come after all others, unless `again` is given.
 */
void tinyml_rnn_mve_s8(const struct tinyml_recurrent_s8 *p,
		       const struct tinyml_recurrent_tensors *t);
void tinyml_gru_mve_s8(const struct tinyml_recurrent_s8 *p,
		       const struct tinyml_recurrent_tensors *t);
void tinyml_recurrent_lstm_mve_s8(const struct tinyml_recurrent_s8 *p,
				  const struct tinyml_recurrent_tensors *t);

/** tanh from -8 to 8 in steps of 1 / 32, in units of 2^-15. */
extern const int16_t tinyml_tanh_s16[513];

/** The same for cores with DSP instructions: an element with the other sign in the low half of a
 * word, because it is multiplied by -2^15, and in the high half how much larger the next element
 * is.
 */
extern const int32_t tinyml_tanh_steps_s16[512];

#ifdef __cplusplus
}
#endif

#endif /* TINYML_RECURRENT_S8_H_ */
