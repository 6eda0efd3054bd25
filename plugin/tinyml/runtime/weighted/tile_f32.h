/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Float dot products of eight filters, four or one with one window or two. Each weight is loaded
 * once for both windows, and each element of a window once for all filters. The weights of filters
 * that are computed together take turns, one each.
 */

#ifndef TINYML_TILE_F32_H_
#define TINYML_TILE_F32_H_

#include <stdint.h>

#include "assembly.h"
#include "fused_f32.h"
#include "weight_f32.h"

#if TINYML_FUSED_F32 && defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#define TINYML_TILE_VECTORS 1
#include <arm_mve.h>
#else
#define TINYML_TILE_VECTORS 0
#endif

/** What filters multiply: `rows` runs of `count` elements of a window. */
struct tinyml_tile_f32 {
	int32_t rows;
	int32_t count;       /* at least 1 */
	int32_t x_skip;      /* bytes from the end of a run to the next one */
	int32_t w_skip;      /* the same for weights */
	const float *start0; /* what the sums of the first window begin with, one per filter */
	const float *start1; /* the same for the second window */
	const float *bias;   /* one per filter */
};

#if TINYML_TILE_VECTORS
#include "tile_mve_f32.h"
#elif TINYML_RVV_F32
#include "tile_rvv_f32.h"
#elif defined(__thumb2__) && defined(__ARM_FP) && (__ARM_FP & 4) && !defined(__SOFTFP__)
#include "tile_vfp_f32.h"
#elif defined(__riscv_flen)
#include "tile_registers_f32.h"
#else

static inline __attribute__((always_inline)) void
tinyml_tile_one_f32(const struct tinyml_tile_f32 *t, const float *start, const float *x,
		    const tinyml_weight_f32 *w, float *y, int32_t filters)
{
	float sums[8];

	for (int32_t i = 0; i < filters; i++) {
		sums[i] = start[i];
	}
	for (int32_t row = 0; row < t->rows; row++) {
		for (int32_t k = 0; k < t->count; k++, x++, w += filters) {
			for (int32_t i = 0; i < filters; i++) {
				sums[i] = tinyml_fused_f32(*x, tinyml_weight_value(w[i]), sums[i]);
			}
		}
		x += t->x_skip / (int32_t)sizeof(float);
		w += t->w_skip / (int32_t)sizeof(tinyml_weight_f32);
	}
	for (int32_t i = 0; i < filters; i++) {
		y[i] = sums[i] + t->bias[i];
	}
}

static inline void tinyml_tile_1x8_f32(const struct tinyml_tile_f32 *t, const float *x,
				       const tinyml_weight_f32 *w, float *y)
{
	tinyml_tile_one_f32(t, t->start0, x, w, y, 8);
}

static inline void tinyml_tile_2x8_f32(const struct tinyml_tile_f32 *t, const float *x0,
				       const float *x1, const tinyml_weight_f32 *w, float *y0,
				       float *y1)
{
	tinyml_tile_one_f32(t, t->start0, x0, w, y0, 8);
	tinyml_tile_one_f32(t, t->start1, x1, w, y1, 8);
}

static inline void tinyml_tile_1x4_f32(const struct tinyml_tile_f32 *t, const float *x,
				       const tinyml_weight_f32 *w, float *y)
{
	tinyml_tile_one_f32(t, t->start0, x, w, y, 4);
}

static inline void tinyml_tile_2x4_f32(const struct tinyml_tile_f32 *t, const float *x0,
				       const float *x1, const tinyml_weight_f32 *w, float *y0,
				       float *y1)
{
	tinyml_tile_one_f32(t, t->start0, x0, w, y0, 4);
	tinyml_tile_one_f32(t, t->start1, x1, w, y1, 4);
}

#endif

/* One filter. Sums of both windows do not wait for each other. */
static inline void tinyml_tile_2x1_f32(const struct tinyml_tile_f32 *t, const float *x0,
				       const float *x1, const tinyml_weight_f32 *w, float *y0,
				       float *y1)
{
	float a = t->start0[0], b = t->start1[0];

	for (int32_t row = 0; row < t->rows; row++) {
		for (int32_t k = t->count; k > 0; k--, w++) {
			a = tinyml_fused_f32(*x0++, tinyml_weight_value(*w), a);
			b = tinyml_fused_f32(*x1++, tinyml_weight_value(*w), b);
		}
		x0 += t->x_skip / (int32_t)sizeof(float);
		x1 += t->x_skip / (int32_t)sizeof(float);
		w += t->w_skip / (int32_t)sizeof(tinyml_weight_f32);
	}
	*y0 = a + t->bias[0];
	*y1 = b + t->bias[0];
}

static inline void tinyml_tile_1x1_f32(const struct tinyml_tile_f32 *t, const float *x,
				       const tinyml_weight_f32 *w, float *y)
{
	float a = t->start0[0];

	for (int32_t row = 0; row < t->rows; row++) {
		for (int32_t k = t->count; k > 0; k--) {
			a = tinyml_fused_f32(*x++, tinyml_weight_value(*w++), a);
		}
		x += t->x_skip / (int32_t)sizeof(float);
		w += t->w_skip / (int32_t)sizeof(tinyml_weight_f32);
	}
	*y = a + t->bias[0];
}

/** So many filters with one window: 8, 4 or 1, known when this is compiled. */
static inline __attribute__((always_inline)) void tinyml_tile_1_f32(const struct tinyml_tile_f32 *t,
								    int32_t filters, const float *x,
								    const tinyml_weight_f32 *w,
								    float *y)
{
	if (filters == 8) {
		tinyml_tile_1x8_f32(t, x, w, y);
	} else if (filters == 4) {
		tinyml_tile_1x4_f32(t, x, w, y);
	} else {
		tinyml_tile_1x1_f32(t, x, w, y);
	}
}

/** The same with two windows. */
static inline __attribute__((always_inline)) void
tinyml_tile_2_f32(const struct tinyml_tile_f32 *t, int32_t filters, const float *x0,
		  const float *x1, const tinyml_weight_f32 *w, float *y0, float *y1)
{
	if (filters == 8) {
		tinyml_tile_2x8_f32(t, x0, x1, w, y0, y1);
	} else if (filters == 4) {
		tinyml_tile_2x4_f32(t, x0, x1, w, y0, y1);
	} else {
		tinyml_tile_2x1_f32(t, x0, x1, w, y0, y1);
	}
}

#endif /* TINYML_TILE_F32_H_ */
