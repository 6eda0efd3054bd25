/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Shared by the kernels for int16 activations on cores with Helium. */

#ifndef TINYML_MVE_S16_H_
#define TINYML_MVE_S16_H_

#include <arm_mve.h>
#include <stdint.h>

/* sum * factor / 2^(32 - shift), rounded, within limits; shift is at most -1. Halves go up: the
 * quotient by 2^32 is rounded down, and the rest is not needed any more. */
static inline int32x4_t tinyml_outputs_mve_s16(int32x4_t sum, int32x4_t factor, int32x4_t shift,
					       int32_t low, int32_t high)
{
	const int32x4_t q = vrshlq_s32(vmulhq_s32(sum, factor), shift);

	return vminq_s32(vmaxq_s32(q, vdupq_n_s32(low)), vdupq_n_s32(high));
}

static inline void tinyml_copy_s16(int16_t *to, const int16_t *from, int32_t count)
{
	for (; count >= 8; count -= 8, from += 8, to += 8) {
		vst1q_s16(to, vld1q_s16(from));
	}
	if (count > 0) {
		const mve_pred16_t some = vctp16q((uint32_t)count);

		vstrhq_p_s16(to, vldrhq_z_s16(from, some), some);
	}
}

/* Runs of so many elements, whose starts are the steps apart. */
__attribute__((noinline, unused)) static void tinyml_copy_runs_s16(int16_t *to, int32_t to_step,
								   const int16_t *from,
								   int32_t from_step, int32_t run,
								   int32_t runs)
{
	const mve_pred16_t some = vctp16q((uint32_t)run);

	if (run > 8) {
		for (; runs > 0; runs--, to += to_step, from += from_step) {
			tinyml_copy_s16(to, from, run);
		}
		return;
	}
	for (; runs > 0; runs--, to += to_step, from += from_step) {
		vstrhq_p_s16(to, vldrhq_z_s16(from, some), some);
	}
}

#endif /* TINYML_MVE_S16_H_ */
