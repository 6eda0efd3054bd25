/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Shared by the kernels for Helium (MVE): copies, and rescaling of accumulators to int8 outputs.
 */

#ifndef TINYML_MVE_S8_H_
#define TINYML_MVE_S8_H_

#include <arm_mve.h>
#include <stdbool.h>
#include <stdint.h>

#include "assembly.h"

#define TINYML_LANES 16 /* bytes in a vector */

/* In assembly, because compilers do not make loops of this kind, which predicate the last vector.
 */
static inline void tinyml_copy(int8_t *to, const int8_t *from, int32_t count)
{
	/* clang-format off */
	__asm__ volatile(
		"wlstp.8 lr, %[count], 2f\n"
		"1:\n\t"
		"vldrb.8 q0, [%[from]], #16\n\t"
		"vstrb.8 q0, [%[to]], #16\n\t"
		"letp lr, 1b\n"
		"2:"
		: [to] "+r"(to), [from] "+r"(from)
		: [count] "r"(count)
		: "lr", "q0", "memory");
	/* clang-format on */
}

static inline void tinyml_fill(int8_t *to, int8_t value, int32_t count)
{
	/* clang-format off */
	__asm__ volatile(
		"vdup.8 q0, %[value]\n\t"
		"wlstp.8 lr, %[count], 2f\n"
		"1:\n\t"
		"vstrb.8 q0, [%[to]], #16\n\t"
		"letp lr, 1b\n"
		"2:"
		: [to] "+r"(to)
		: [count] "r"(count), [value] "r"(value)
		: "lr", "q0", "memory");
	/* clang-format on */
}

/** Four accumulators times their multipliers, as tinyml_rescale() or tinyml_rescale_once().
 *
 * Shifts are to the right: 0 or negative, and never 0 with one rounding.
 */
static inline int32x4_t tinyml_rescale_4(int32x4_t acc, int32x4_t multiplier, int32x4_t shift,
					 bool once)
{
	if (once) {
		/* Rounding down here changes nothing: the shift rounds at a higher bit. */
		acc = vqdmulhq_s32(acc, multiplier);
	} else {
		/* The shift rounds halves up, but negative halves must round down. */
		acc = vqrdmulhq_s32(acc, multiplier);
		acc = vqaddq_s32(acc, vshrq_n_s32(vandq_s32(acc, shift), 31));
	}
	return vrshlq_s32(acc, shift);
}

/** Zero point and limits, applied to four elements that are then stored as bytes. */
struct tinyml_limits {
	int32_t zero;
	int32_t low;
	int32_t high;
};

static inline int32x4_t tinyml_limit_4(int32x4_t value, const struct tinyml_limits *to)
{
	value = vminq_s32(vqaddq_n_s32(value, to->zero), vdupq_n_s32(to->high));
	return vmaxq_s32(value, vdupq_n_s32(to->low));
}

#endif /* TINYML_MVE_S8_H_ */
