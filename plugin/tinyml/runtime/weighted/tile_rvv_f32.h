/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The tiles of tile_f32.h for RISC-V's vectors with floats: lanes are filters, so that each sum
 * keeps its order, whatever the length of vectors. Where eight floats do not fit into two
 * registers, the tile is computed in parts.
 */

#ifndef TINYML_TILE_RVV_F32_H_
#define TINYML_TILE_RVV_F32_H_

#include <stdbool.h>

#include "weights_rvv_f32.h"

/* Sums of one window, or of two. */
static inline __attribute__((always_inline)) void
tinyml_tile_vectors_f32(const struct tinyml_tile_f32 *t, size_t filters, bool two, const float *x0,
			const float *x1, const tinyml_weight_f32 *w, float *y0, float *y1)
{
	const int32_t x_skip = t->x_skip / (int32_t)sizeof(float);
	const int32_t w_skip = t->w_skip / (int32_t)sizeof(tinyml_weight_f32);

	for (size_t done = 0, vl; done < filters; done += vl) {
		const float *a = x0, *b = x1;
		const tinyml_weight_f32 *v = &w[done];
		vfloat32m2_t s0, s1, bias;

		vl = __riscv_vsetvl_e32m2(filters - done);
		s0 = __riscv_vle32_v_f32m2(&t->start0[done], vl);
		s1 = two ? __riscv_vle32_v_f32m2(&t->start1[done], vl) : s0;
#define STEP(i)                                                                                    \
	do {                                                                                       \
		const vfloat32m2_t weights = tinyml_rvv_weights(v, vl);                            \
		s0 = __riscv_vfmacc(s0, a[i], weights, vl);                                        \
		s1 = two ? __riscv_vfmacc(s1, b[i], weights, vl) : s0;                             \
		v += filters;                                                                      \
	} while (0)
		for (int32_t row = t->rows; row > 0; row--) {
			const float *const end = a + t->count, *const rest = end - t->count % 4;

			for (; a != rest; a += 4, b += 4) {
				STEP(0);
				STEP(1);
				STEP(2);
				STEP(3);
			}
			for (; a != end; a++, b++) {
				STEP(0);
			}
			a += x_skip;
			b += x_skip;
			v += w_skip;
		}
#undef STEP
		bias = __riscv_vle32_v_f32m2(&t->bias[done], vl);
		__riscv_vse32(&y0[done], __riscv_vfadd(s0, bias, vl), vl);
		if (two) {
			__riscv_vse32(&y1[done], __riscv_vfadd(s1, bias, vl), vl);
		}
	}
}

static inline void tinyml_tile_1x8_f32(const struct tinyml_tile_f32 *t, const float *x,
				       const tinyml_weight_f32 *w, float *y)
{
	tinyml_tile_vectors_f32(t, 8, false, x, x, w, y, y);
}

static inline void tinyml_tile_2x8_f32(const struct tinyml_tile_f32 *t, const float *x0,
				       const float *x1, const tinyml_weight_f32 *w, float *y0,
				       float *y1)
{
	tinyml_tile_vectors_f32(t, 8, true, x0, x1, w, y0, y1);
}

static inline void tinyml_tile_1x4_f32(const struct tinyml_tile_f32 *t, const float *x,
				       const tinyml_weight_f32 *w, float *y)
{
	tinyml_tile_vectors_f32(t, 4, false, x, x, w, y, y);
}

static inline void tinyml_tile_2x4_f32(const struct tinyml_tile_f32 *t, const float *x0,
				       const float *x1, const tinyml_weight_f32 *w, float *y0,
				       float *y1)
{
	tinyml_tile_vectors_f32(t, 4, true, x0, x1, w, y0, y1);
}

#endif /* TINYML_TILE_RVV_F32_H_ */
