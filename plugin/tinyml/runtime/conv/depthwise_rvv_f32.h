/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* depthwise_tile_f32.h for RISC-V's vectors with floats: lanes are channels, as many as fit into
 * two registers.
 */

#ifndef TINYML_DEPTHWISE_RVV_F32_H_
#define TINYML_DEPTHWISE_RVV_F32_H_

#include "../weighted/weights_rvv_f32.h"

/* How many channels that are. */
static inline int32_t depthwise_rvv_f32(const struct depthwise_tile_f32 *t, const float *x,
					const tinyml_weight_f32 *w, float *y, int32_t left)
{
	const int32_t size = sizeof(float), w_size = sizeof(tinyml_weight_f32);
	const int32_t x_step = t->x_step / size, w_step = t->w_step / w_size;
	const int32_t x_skip = t->x_skip / size, w_skip = t->w_skip / w_size;
	const size_t vl = __riscv_vsetvl_e32m2((size_t)left);
	const float *x1 = x + t->x_other / size;
	vfloat32m2_t a = __riscv_vle32_v_f32m2(t->bias, vl), b = a;

	for (int32_t row = t->rows; row > 0; row--) {
		for (int32_t tap = t->taps; tap > 0; tap--) {
			const vfloat32m2_t weights = tinyml_rvv_weights(w, vl);

			a = __riscv_vfmacc(a, __riscv_vle32_v_f32m2(x, vl), weights, vl);
			b = __riscv_vfmacc(b, __riscv_vle32_v_f32m2(x1, vl), weights, vl);
			x += x_step;
			x1 += x_step;
			w += w_step;
		}
		x += x_skip;
		x1 += x_skip;
		w += w_skip;
	}
	__riscv_vse32(y, a, vl);
	__riscv_vse32(&y[t->y_other / size], b, vl);
	return (int32_t)vl;
}

#endif /* TINYML_DEPTHWISE_RVV_F32_H_ */
