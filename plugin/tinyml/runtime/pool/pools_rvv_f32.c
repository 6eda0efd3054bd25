/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/tinyml.h>

#if TINYML_CORE_RVV_F32

#include <riscv_vector.h>

#include "pools_f32.h"

/* What is greater than `high` becomes that; a NaN stays. */
static inline vfloat32m4_t pools_rvv_limited(vfloat32m4_t v, float high, size_t vl)
{
	return __riscv_vfmerge(v, high, __riscv_vmfgt(v, high, vl), vl);
}

/* Of equal elements the first one, as in the loops of other cores; a NaN wins. */
static void pools_rvv_max_position(const struct pools_f32_view *view, const float *x, float *y)
{
	for (size_t left = (size_t)view->channels, vl; left > 0; left -= vl, x += vl, y += vl) {
		const float *row = x;
		vfloat32m4_t best;

		vl = __riscv_vsetvl_e32m4(left);
		best = __riscv_vfmv_v_f_f32m4(view->low, vl);
		for (int32_t i = view->height; i > 0; i--, row += view->row_step) {
			const float *at = row;

			for (int32_t j = view->width; j > 0; j--, at += view->step) {
				const vfloat32m4_t v = __riscv_vle32_v_f32m4(at, vl);
				const vbool8_t wins = __riscv_vmor(__riscv_vmfgt(v, best, vl),
								   __riscv_vmfne(v, v, vl), vl);

				best = __riscv_vmerge(best, v, wins, vl);
			}
		}
		__riscv_vse32(y, pools_rvv_limited(best, view->high, vl), vl);
	}
}

/* Sums in the order of the loops of other cores. */
static void pools_rvv_mean_position(const struct pools_f32_view *view, const float *x, float *y)
{
	for (size_t left = (size_t)view->channels, vl; left > 0; left -= vl, x += vl, y += vl) {
		const float *row = x;
		vfloat32m4_t sum;

		vl = __riscv_vsetvl_e32m4(left);
		sum = __riscv_vfmv_v_f_f32m4(0.0f, vl);
		for (int32_t i = view->height; i > 0; i--, row += view->row_step) {
			const float *at = row;

			for (int32_t j = view->width; j > 0; j--, at += view->step) {
				sum = __riscv_vfadd(sum, __riscv_vle32_v_f32m4(at, vl), vl);
			}
		}
		sum = __riscv_vfdiv(sum, view->divisor, vl);
		sum = __riscv_vfmerge(sum, view->low, __riscv_vmflt(sum, view->low, vl), vl);
		__riscv_vse32(y, pools_rvv_limited(sum, view->high, vl), vl);
	}
}

void tinyml_max_pool_rvv_f32(const struct tinyml_pool_f32 *p, const float *x, float *y)
{
	pools_f32_all(p, x, y, pools_rvv_max_position);
}

void tinyml_average_pool_rvv_f32(const struct tinyml_pool_f32 *p, const float *x, float *y)
{
	pools_f32_all(p, x, y, pools_rvv_mean_position);
}

#endif /* TINYML_CORE_RVV_F32 */
