/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Float layers whose weights are small integers times a scale, one for each block of a filter.
 *
 * Weights of four bits are steps from 0 to 15. A word has eight of them: byte i has element i in
 * its lower and element i + 4 in its upper half. Every block starts with a word of its own.
 */

#ifndef TINYML_BLOCK_WEIGHTS_H_
#define TINYML_BLOCK_WEIGHTS_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Weight = (step - zero) * scale. */
struct tinyml_steps_s4 {
	int32_t inputs;
	int32_t block;           /* inputs that share a scale; the last block may have fewer */
	const uint32_t *weights; /* (outputs, words of all blocks) */
	const float *scales;     /* (outputs, blocks) */
	const uint8_t *zeros;    /* the same: the step that means 0; NULL if that is 8 everywhere */
};

/** Weight = (byte - zero) * scale. */
struct tinyml_steps_s8 {
	int32_t inputs;
	int32_t block;
	const int8_t *weights; /* (outputs, inputs) */
	const float *scales;   /* (outputs, blocks) */
	const int16_t *zeros;  /* the same; NULL if that is 0 everywhere */
};

struct tinyml_dense_f32_s4 {
	int32_t rows;
	int32_t outputs;
	struct tinyml_steps_s4 steps;
	const float *bias; /* one per output, or NULL */
	float out_min;
	float out_max;
};

struct tinyml_dense_blocks_f32_s8 {
	int32_t rows;
	int32_t outputs;
	struct tinyml_steps_s8 steps;
	const float *bias; /* one per output, or NULL */
	float out_min;
	float out_max;
};

/** `sums`: as many floats as a filter has blocks. */
void tinyml_dense_f32_s4(const struct tinyml_dense_f32_s4 *p, const float *x, float *y,
			 float *sums);
void tinyml_dense_blocks_f32_s8(const struct tinyml_dense_blocks_f32_s8 *p, const float *x,
				float *y, float *sums);

/** One filter as floats: a row of a table. */
void tinyml_row_f32_s4(const struct tinyml_steps_s4 *p, int32_t row, float *y);
void tinyml_row_f32_s8(const struct tinyml_steps_s8 *p, int32_t row, float *y);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_BLOCK_WEIGHTS_H_ */
