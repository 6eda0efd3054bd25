/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** What the zero points of blocks are multiplied by: sums of the input, the same for all filters.
 */

#ifndef TINYML_BLOCK_SUMS_F32_H_
#define TINYML_BLOCK_SUMS_F32_H_

#include <stdint.h>

static inline int32_t tinyml_block_end(int32_t begin, int32_t block, int32_t inputs)
{
	return inputs - begin < block ? inputs : begin + block;
}

static inline void tinyml_block_sums(const float *x, int32_t inputs, int32_t block, float *sums)
{
	for (int32_t begin = 0; begin < inputs; begin = tinyml_block_end(begin, block, inputs)) {
		const int32_t end = tinyml_block_end(begin, block, inputs);
		float sum = 0.0f;

		for (int32_t i = begin; i < end; i++) {
			sum += x[i];
		}
		*sums++ = sum;
	}
}

#endif /* TINYML_BLOCK_SUMS_F32_H_ */
