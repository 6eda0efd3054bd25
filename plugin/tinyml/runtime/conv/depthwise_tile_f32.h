/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Neighbouring channels of two windows of a depthwise convolution: each weight is loaded once for
 * both. Sums begin with the bias and go through the taps from the first to the last.
 */

#ifndef TINYML_DEPTHWISE_TILE_F32_H_
#define TINYML_DEPTHWISE_TILE_F32_H_

#include <stdint.h>

#include "../weighted/assembly.h"
#include "../weighted/fused_f32.h"
#include "../weighted/weight_f32.h"

/* All distances are in bytes. */
struct depthwise_tile_f32 {
	int32_t rows, taps;       /* rows is 0, or both are at least 1 */
	int32_t x_step, w_step;   /* from one tap to the next */
	int32_t x_skip, w_skip;   /* from the end of a row to the next */
	const float *bias;        /* of the first channel */
	int32_t x_other, y_other; /* from the first window to the second */
};

/* Channels one by one. */
static inline void depthwise_tile_f32_one(const struct depthwise_tile_f32 *t, const float *x,
					  const tinyml_weight_f32 *w, float *y)
{
	const int32_t size = sizeof(float), w_size = sizeof(tinyml_weight_f32);
	const float *x1 = x + t->x_other / size;
	float a = *t->bias, b = a;

	for (int32_t row = t->rows; row > 0; row--) {
		for (int32_t tap = t->taps; tap > 0; tap--) {
			a = tinyml_fused_f32(*x, tinyml_weight_value(*w), a);
			b = tinyml_fused_f32(*x1, tinyml_weight_value(*w), b);
			x += t->x_step / size;
			x1 += t->x_step / size;
			w += t->w_step / w_size;
		}
		x += t->x_skip / size;
		x1 += t->x_skip / size;
		w += t->w_skip / w_size;
	}
	*y = a;
	y[t->y_other / size] = b;
}

#if TINYML_FUSED_F32 && defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "depthwise_mve_f32.h"
#elif TINYML_RVV_F32
#include "depthwise_rvv_f32.h"
#elif defined(__thumb2__) && defined(__ARM_FP) && (__ARM_FP & 4) && !defined(__SOFTFP__)
#include "depthwise_vfp_f32.h"
#elif defined(__riscv_flen)
#include "depthwise_registers_f32.h"
#endif

/* As many of the channels that are left as a tile has; how many that are. */
static inline int32_t depthwise_tile_f32(const struct depthwise_tile_f32 *t, const float *x,
					 const tinyml_weight_f32 *w, float *y, int32_t left)
{
#ifdef TINYML_DEPTHWISE_MVE_F32_H_
	if (left >= 8) {
		depthwise_mve_f32_8(t, x, w, y);
		return 8;
	}
	depthwise_mve_f32_4(t, x, w, y, left);
	return 4;
#elif defined(TINYML_DEPTHWISE_RVV_F32_H_)
	return depthwise_rvv_f32(t, x, w, y, left);
#else
#ifdef TINYML_DEPTHWISE_VFP_F32_H_
	if (left >= 8) {
		depthwise_vfp_f32_8(t, x, w, y);
		return 8;
	}
	if (left >= 4) {
		depthwise_vfp_f32_4(t, x, w, y);
		return 4;
	}
#endif
#ifdef TINYML_DEPTHWISE_REGISTERS_F32_H_
	if (left >= 4) {
		depthwise_registers_f32_4(t, x, w, y);
		return 4;
	}
#endif
	(void)left;
	depthwise_tile_f32_one(t, x, w, y);
	return 1;
#endif
}

#endif /* TINYML_DEPTHWISE_TILE_F32_H_ */
