/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Weights of float layers in RISC-V's vector registers. */

#ifndef TINYML_WEIGHTS_RVV_F32_H_
#define TINYML_WEIGHTS_RVV_F32_H_

#include <stddef.h>
#include <stdint.h>

#include <riscv_vector.h>

#include "weight_f32.h"

/* So many weights as floats, as tinyml_weight_value() makes them: the exponents of float16 and of
 * floats differ by 112, and a multiplication mends this for the smallest numbers, too. Weights
 * are finite: with others, models have floats.
 */
static inline __attribute__((always_inline)) vfloat32m2_t
tinyml_rvv_weights(const tinyml_weight_f32 *w, size_t vl)
{
#if TINYML_HALF_WEIGHTS
	const vint16m1_t halves = __riscv_vle16_v_i16m1((const int16_t *)w, vl);
	const vint32m2_t wide = __riscv_vsll(__riscv_vsext_vf2(halves, vl), 13, vl);
	const vint32m2_t bits = __riscv_vand(wide, (int32_t)0x8fffe000U, vl);

	return __riscv_vfmul(__riscv_vreinterpret_f32m2(bits), 0x1p112f, vl);
#else
	return __riscv_vle32_v_f32m2(w, vl);
#endif
}

#endif /* TINYML_WEIGHTS_RVV_F32_H_ */
