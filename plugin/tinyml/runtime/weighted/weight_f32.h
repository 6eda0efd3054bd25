/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * The weights of float layers: floats, or half-precision numbers in the files that define
 * TINYML_HALF_WEIGHTS as 1. These are floats again before they are multiplied, so that both give
 * the same results.
 */

#ifndef TINYML_WEIGHT_F32_H_
#define TINYML_WEIGHT_F32_H_

#include <stdint.h>

#ifndef TINYML_HALF_WEIGHTS
#define TINYML_HALF_WEIGHTS 0
#endif

#if TINYML_HALF_WEIGHTS

#include "half_f32.h"

typedef uint16_t tinyml_weight_f32;

static inline float tinyml_weight_value(tinyml_weight_f32 weight)
{
	return tinyml_half_f32(weight);
}

/* Weights that assembly reads begin at multiples of four bytes. */
static inline int32_t tinyml_weights_stored(int32_t count)
{
	return (count + 1) & ~1;
}

#else

typedef float tinyml_weight_f32;

static inline float tinyml_weight_value(tinyml_weight_f32 weight)
{
	return weight;
}

static inline int32_t tinyml_weights_stored(int32_t count)
{
	return count;
}

#endif

#endif /* TINYML_WEIGHT_F32_H_ */
