/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Dense layers: y = x * weights^T + bias. */

#ifndef TINYML_DENSE_H_
#define TINYML_DENSE_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * int8 dense layer whose weights are a stream of words (four bytes each), read from front to back.
 *
 * Filters come in fours, the outputs % 4 last ones one by one. With W = ceil(inputs / 4) words in a
 * filter, padded with zeros, four filters a, b, c, d take 4 * W + 9 words:
 *
 *   bias of a, b, c, d
 *   word 0 of a, b, c, d, word 1 of a, b, c, d, ... word W-1 of a, b, c, d
 *   factor of a, b, c, d
 *   exponent of a, b, c, d (one byte each)
 *
 * A single filter a takes W + 3 words:
 *
 *   bias of a
 *   word 0 of a, word 1 of a, ... word W-1 of a
 *   factor of a
 *   exponent of a (one byte), 0, 0, 0
 *
 * Bias, factor and exponent are those of struct tinyml_conv_stream_s8 (see conv.h).
 */
struct tinyml_dense_stream_s8 {
	int32_t rows;
	int32_t inputs;
	int32_t outputs;
	const int32_t *filters; /* the stream */
	int16_t weight_zero;
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	bool round_once; /* use tinyml_rescale_once() */
};

/** Plain C. */
void tinyml_dense_s8(const struct tinyml_dense_stream_s8 *p, const int8_t *x, int8_t *y);

/**
 * For Arm cores without DSP instructions. Four filters have their weights in another order: for
 * every element a word, of which a + 128, b + 128, c + 128 and d are the bytes, modulo 256.
 */
void tinyml_dense_quads_s8(const struct tinyml_dense_stream_s8 *p, const int8_t *x, int8_t *y);

/** For cores with DSP instructions; every shift is negative. */
void tinyml_dense_dsp_s8(const struct tinyml_dense_stream_s8 *p, const int8_t *x, int8_t *y);

/**
 * For cores with DSP instructions; every shift is negative, weight_zero is 0. The stream is that of
 * tinyml_conv_pairs_s8() (see conv.h) with the inputs as elements.
 */
void tinyml_dense_pairs_s8(const struct tinyml_dense_stream_s8 *p, const int8_t *x, int8_t *y);

/**
 * The same for one row of whole words (inputs is a multiple of 4) and more than eight outputs, with
 * the filters in sixes. The outputs % 6 last filters, or if those are one or two the outputs % 6 +
 * 6 last ones, follow as tinyml_dense_pairs_s8() reads them. Six filters a to f are:
 *
 *   bias of a, b, c, d, e, f
 *   elements 0 and 2 of a and b, of c and d, of e and f, then elements 1 and 3; the next four ...
 *   exponent of a, b, c (one byte each), 0
 *   factor of a, b, c
 *   exponent of d, e, f (one byte each), 0
 *   factor of d, e, f
 */
void tinyml_dense_sixes_s8(const struct tinyml_dense_stream_s8 *p, const int8_t *x, int8_t *y);

/**
 * For weights of four bits: u = w + weight_zero is between 0 and 15. Filters come in fours; missing
 * ones make no output. One element of filters a, b, c, d is an int16, h = u_a + 16 * u_b + 256 *
 * u_c + 4096 * (u_d - 8), and 0 after the last element. With W = ceil(inputs / 4), four filters
 * take 2 * W + 9 words:
 *
 *   bias of a, b, c, d
 *   h of elements 0 and 2, of elements 1 and 3, of elements 4 and 6, of elements 5 and 7, ...
 *   factor of a, b, c, d
 *   exponent of a, b, c, d (one byte each)
 */
void tinyml_dense_nibbles_s8(const struct tinyml_dense_stream_s8 *p, const int8_t *x, int8_t *y);

/**
 * The same for cores with DSP instructions, with filters in eights; missing ones make no output.
 * Eight filters a to h are:
 *
 *   A = bias of a, B = A + 16 * bias of b, C = B + 256 * bias of c, D = C + 4096 * bias of d
 *   the same of e, f, g, h
 *   elements 0 and 2 of a to d, of e to h, elements 1 and 3 of a to d, of e to h, ...
 *   exponent of a, b, c, d (one byte each)
 *   factor of a, b, c, d
 *   exponent and factor of e, f, g, h
 *
 * The sums of the second, third and fourth filter of each four are within 28, 24 and 20 bits.
 */
void tinyml_dense_nibbles_dsp_s8(const struct tinyml_dense_stream_s8 *p, const int8_t *x,
				 int8_t *y);

/**
 * int8 dense layer for cores with Helium: weights without zero point.
 *
 * Filters come in fours. With V = ceil(inputs / 16) vectors of 16 bytes, the last of which has only
 * the remaining elements, four filters a, b, c, d are:
 *
 *   vector 0 of a, b, c, d, vector 1 of a, b, c, d, ... vector V-1 of a, b, c, d
 *
 * The outputs % 4 last filters follow one by one, as they are. The other tables have one entry per
 * output. The bias includes the zero points, as in the stream.
 */
struct tinyml_dense_mve;
struct tinyml_dense_mve_s8 {
	int32_t rows;
	int32_t inputs;
	int32_t outputs;
	const int8_t *weights;
	const int32_t *bias;
	const int32_t *multiplier;
	const int8_t *shift; /* not positive; negative with round_once */
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	bool round_once; /* use tinyml_rescale_once() */
	const struct tinyml_dense_mve *loop;
};

/** Loops over the filters; only those that a model names are linked. */
extern const struct tinyml_dense_mve tinyml_dense_mve_once;  /* round_once is true */
extern const struct tinyml_dense_mve tinyml_dense_mve_twice; /* it is false */
extern const struct tinyml_dense_mve tinyml_dense_mve_relu;  /* also, and out_min >= out_zero */

void tinyml_dense_mve_s8(const struct tinyml_dense_mve_s8 *p, const int8_t *x, int8_t *y);

/**
 * The same with weights of four bits, from -8 to 7: filters a and b are bytes 16 * b + a, which
 * must be within int8, and so are c and d. Vectors of a and b, and of c and d, take turns. All
 * tables have whole fours of filters.
 */
extern const struct tinyml_dense_mve tinyml_dense_mve_nibbles_once;
extern const struct tinyml_dense_mve tinyml_dense_mve_nibbles_twice;
extern const struct tinyml_dense_mve tinyml_dense_mve_nibbles_relu;
/* With any shift: sums times 2^shift are within int32; with round_once, times 2^(shift + 1). */
extern const struct tinyml_dense_mve tinyml_dense_mve_nibbles_large_once;
extern const struct tinyml_dense_mve tinyml_dense_mve_nibbles_large_twice;
extern const struct tinyml_dense_mve tinyml_dense_mve_nibbles_large_relu;
void tinyml_dense_nibbles_mve_s8(const struct tinyml_dense_mve_s8 *p, const int8_t *x, int8_t *y);

/**
 * int8 dense layer for RISC-V with vectors of integers: weights (inputs, outputs) without zero
 * point. The other tables have one entry per output; the bias includes the zero points, as in the
 * stream.
 */
struct tinyml_dense_rvv_s8 {
	int32_t rows;
	int32_t inputs;
	int32_t outputs;
	const int8_t *weights;
	const int32_t *bias;
	const int32_t *multiplier;
	const int8_t *shift; /* not positive; negative with round_once */
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	bool round_once; /* use tinyml_rescale_once() */
};

void tinyml_dense_rvv_s8(const struct tinyml_dense_rvv_s8 *p, const int8_t *x, int8_t *y);

/**
 * The same with weights of four bits, from -8 to 7, two elements in a byte, the first in its lower
 * half. If the number of elements is odd, the last has bytes of its own.
 */
void tinyml_dense_nibbles_rvv_s8(const struct tinyml_dense_rvv_s8 *p, const int8_t *x, int8_t *y);

struct tinyml_dense_f32 {
	int32_t rows;
	int32_t inputs;
	int32_t outputs;
	const float *weights; /* by eight outputs (inputs, 8), by four, then one by one */
	const float *bias;    /* one per output, or NULL */
	float out_min;
	float out_max;
};

void tinyml_dense_f32(const struct tinyml_dense_f32 *p, const float *x, float *y);

/** The same for weights that are mostly zero, of which only the others are stored. */
struct tinyml_dense_sparse_f32 {
	int32_t rows;
	int32_t inputs;
	int32_t outputs;
	const float *weights;   /* that are not zero, output by output */
	const uint16_t *places; /* of each: the input it belongs to */
	const uint16_t *counts; /* of each output: how many weights it has */
	const float *bias;      /* one per output, or NULL */
	float out_min;
	float out_max;
};

void tinyml_dense_sparse_f32(const struct tinyml_dense_sparse_f32 *p, const float *x, float *y);

/** The same for weights that are not zero in runs, as in the filters of a filter bank. */
struct tinyml_dense_runs_f32 {
	int32_t rows;
	int32_t inputs;
	int32_t outputs;
	const float *weights;   /* of all runs, output by output */
	const uint16_t *runs;   /* in the same order: first input, number of weights (at least 1) */
	const uint16_t *counts; /* of each output: how many runs it has */
	const float *bias;      /* one per output, or NULL */
	float out_min;
	float out_max;
};

void tinyml_dense_runs_f32(const struct tinyml_dense_runs_f32 *p, const float *x, float *y);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_DENSE_H_ */
