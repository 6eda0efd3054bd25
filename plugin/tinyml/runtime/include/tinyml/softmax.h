/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Softmax on quantised tensors. */

#ifndef TINYML_SOFTMAX_H_
#define TINYML_SOFTMAX_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tinyml_softmax_s8 {
	int32_t rows;
	int32_t depth;
	int32_t multiplier; /* of differences, to Q5.26 */
	int32_t left_shift;
	int32_t least_difference; /* exp of anything below counts as 0 */
};

/** Along rows of depth elements; the output has scale 1/256 and zero point -128. */
void tinyml_softmax_s8(const struct tinyml_softmax_s8 *p, const int8_t *x, int8_t *y);

struct tinyml_softmax_s16 {
	int32_t rows;
	int32_t depth;
	int32_t multiplier; /* of differences, to 10 / 65535 */
	int32_t shift;
	const int16_t *exp;        /* 513 values for -10 to 0 */
	const int16_t *reciprocal; /* 513 values of 1 / (1 + x) for 0 to 1 */
};

/** Along rows of depth elements; the output has scale 2^-15 and zero point 0. */
void tinyml_softmax_s16(const struct tinyml_softmax_s16 *p, const int16_t *x, int16_t *y);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_SOFTMAX_H_ */
