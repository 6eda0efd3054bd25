/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Whether float convolutions and dense layers round products before they add them.
 *
 * TINYML_FUSED_F32 is 1 if x * w + sum is rounded once, by one instruction, and 0 if the product
 * and the sum are rounded. By default it is 1 on Cortex-M and RISC-V cores with such an
 * instruction, and 0 elsewhere. Two builds with the same value give the
 * same results, bit for bit: a computer repeats what a core computed if it is built with
 * -DTINYML_FUSED_F32=1. With 0, compilers must not fuse on their own: -ffp-contract=off, or a
 * standard of ISO such as -std=c11.
 */

#ifndef TINYML_FUSED_F32_H_
#define TINYML_FUSED_F32_H_

#include <tinyml/tinyml.h>

#ifndef TINYML_FUSED_F32
#if defined(__ARM_FEATURE_FMA) && defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#define TINYML_FUSED_F32 1
#elif defined(__riscv_flen)
#define TINYML_FUSED_F32 1
#else
#define TINYML_FUSED_F32 0
#endif
#endif

/* Whether there are RISC-V vectors of floats, which fuse as well. */
#if TINYML_FUSED_F32 && TINYML_CORE_RVV_F32
#define TINYML_RVV_F32 1
#else
#define TINYML_RVV_F32 0
#endif

static inline float tinyml_fused_f32(float x, float w, float sum)
{
#if TINYML_FUSED_F32
	return __builtin_fmaf(x, w, sum);
#else
	return sum + x * w;
#endif
}

#endif /* TINYML_FUSED_F32_H_ */
