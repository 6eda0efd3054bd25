/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Float layers whose weights are int8 times one scale per output. */

#ifndef TINYML_BYTE_WEIGHTS_H_
#define TINYML_BYTE_WEIGHTS_H_

#include <stdint.h>

#include <tinyml/conv.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tinyml_dense_f32_s8 {
	int32_t rows;
	int32_t inputs;
	int32_t outputs;
	const int8_t *weights; /* (outputs, inputs) */
	const float *scales;   /* one per output */
	const float *bias;     /* one per output, or NULL */
	float out_min;
	float out_max;
};

/** The same for weights that are mostly zero: those outside of the runs are not stored. */
struct tinyml_dense_runs_f32_s8 {
	int32_t rows;
	int32_t inputs;
	int32_t outputs;
	const int8_t *weights;  /* of all runs, output by output */
	const uint16_t *runs;   /* in the same order: first input, number of weights (at least 1) */
	const uint16_t *counts; /* of each output: how many runs it has */
	const float *scales;    /* one per output */
	const float *bias;      /* one per output, or NULL */
	float out_min;
	float out_max;
};

struct tinyml_conv_f32_s8 {
	struct tinyml_window window;
	int16_t groups;
	bool from_the_end;     /* compute the last position first */
	const int8_t *weights; /* (out_c, kernel_h, kernel_w, in_c / groups) */
	const float *scales;   /* one per output channel */
	const float *bias;     /* one per output channel, or NULL */
	float out_min;
	float out_max;
};

void tinyml_dense_f32_s8(const struct tinyml_dense_f32_s8 *p, const float *x, float *y);
void tinyml_dense_runs_f32_s8(const struct tinyml_dense_runs_f32_s8 *p, const float *x, float *y);
void tinyml_conv_f32_s8(const struct tinyml_conv_f32_s8 *p, const float *x, float *y);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_BYTE_WEIGHTS_H_ */
