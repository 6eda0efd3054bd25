/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Samples as features: `frontend: {kind: normalize}`. */

#ifndef TINYML_NORMALIZE_H_
#define TINYML_NORMALIZE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** y = (x - mean) / std for each of `count` values. */
static inline void tinyml_normalize_f32(const float *x, const float *mean, const float *std,
					int32_t count, float *y)
{
	for (int32_t i = 0; i < count; i++) {
		y[i] = (x[i] - mean[i]) / std[i];
	}
}

#ifdef __cplusplus
}
#endif

#endif /* TINYML_NORMALIZE_H_ */
