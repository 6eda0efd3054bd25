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

struct tinyml_dense_s8 {
	int32_t rows;
	int32_t inputs;
	int32_t outputs;
	const int8_t *weights;     /* as the kernel wants them */
	const int32_t *bias;       /* less the part of the zero points: see folded_bias() */
	const int32_t *multiplier; /* one per output, as bias and shift */
	const int8_t *shift;
	int16_t weight_zero;
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	bool round_once; /* see tinyml_rescale_once() */
};

struct tinyml_dense_f32 {
	int32_t rows;
	int32_t inputs;
	int32_t outputs;
	const float *weights;
	const float *bias;
	float out_min;
	float out_max;
};

/** Weights are a stream of words, with biases, multipliers and shifts between them, four filters at
 * a time, the last ones one by one: see ops/_stream.py.
 */
void tinyml_dense_s8(const struct tinyml_dense_s8 *p, const int8_t *x, int8_t *y);

/** The same for cores with DSP instructions. */
void tinyml_dense_dsp_s8(const struct tinyml_dense_s8 *p, const int8_t *x, int8_t *y);

/** For cores with Helium. Filters come in fours, whose vectors of 16 elements take turns; weights
 * have no zero point.
 */
void tinyml_dense_mve_s8(const struct tinyml_dense_s8 *p, const int8_t *x, int8_t *y);

void tinyml_dense_f32(const struct tinyml_dense_f32 *p, const float *x, float *y);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_DENSE_H_ */
