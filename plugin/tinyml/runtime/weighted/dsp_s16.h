/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Shared by the kernels for int16 activations on cores with DSP instructions. */

#ifndef TINYML_DSP_S16_H_
#define TINYML_DSP_S16_H_

#include "dsp_s8.h"

/* sum * factor / 2^(32 + shift), rounded, within limits; shift is at least 1. Halves go up: the
 * quotient by 2^32 is rounded down, and the rest is not needed any more. */
static inline int16_t tinyml_output_s16(int32_t sum, int32_t factor, int32_t shift, int32_t low,
					int32_t high)
{
	int32_t q;

	__asm__("smmul %0, %1, %2" : "=r"(q) : "r"(sum), "r"(factor));
	q = (q + (INT32_C(1) << (shift - 1))) >> shift;
	return (int16_t)tinyml_clamp(q, low, high);
}

/* Few elements, for which a call of memcpy() takes longer. */
static inline void tinyml_copy_s16(int16_t *to, const int16_t *from, int32_t count)
{
	for (; count >= 2; count -= 2, from += 2, to += 2) {
		const uint32_t two = tinyml_load_word(from);

		memcpy(to, &two, sizeof(two));
	}
	if (count > 0) {
		*to = *from;
	}
}

/* Runs of so many elements, whose starts are the steps apart. A function of its own, which has few
 * values to keep.
 */
__attribute__((noinline, unused)) static void tinyml_copy_runs_s16(int16_t *to, int32_t to_step,
								   const int16_t *from,
								   int32_t from_step, int32_t run,
								   int32_t runs)
{
	for (; runs > 0; runs--, to += to_step, from += from_step) {
		tinyml_copy_s16(to, from, run);
	}
}

#endif /* TINYML_DSP_S16_H_ */
