/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Filters that see few channels, with Helium: sixteen elements of four windows at a time. */

#include <tinyml/conv.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "conv_few_mve.h"

TINYML_ASSEMBLY static void conv_few_mve_s8_apply(struct conv_few_mve_walk *walk TINYML_UNSEEN)
{
	/* clang-format off */
#define STEP(multiply)                                                                             \
	"vldrb.8 q0, [r2], #16\n\t"                                                                \
	"vldrb.8 q1, [r7], #16\n\t"                                                                \
	"vldrb.u8 q2, [r1, q0]\n\t"                                                                \
	multiply ".s8 r4, q1, q2\n\t"                                                              \
	"vldrb.u8 q3, [r3, q0]\n\t"                                                                \
	multiply ".s8 r6, q1, q3\n\t"                                                              \
	"vldrb.u8 q2, [r5, q0]\n\t"                                                                \
	multiply ".s8 r8, q1, q2\n\t"                                                              \
	"vldrb.u8 q3, [r9, q0]\n\t"                                                                \
	multiply ".s8 r10, q1, q3\n\t"
	__asm__ volatile(CONV_FEW_MVE(STEP, "vstrbt.32", "1"));
	/* clang-format on */
#undef STEP
}

void tinyml_conv_few_mve_s8(const struct tinyml_conv_few_mve *p, const int8_t *x, int8_t *y,
			    void *scratch)
{
	conv_few_mve_convolve(p, x, y, scratch, 1, conv_few_mve_s8_apply);
}

#endif /* TINYML_CORE_MVE */
