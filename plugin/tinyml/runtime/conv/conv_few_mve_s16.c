/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Filters that see few channels, with int16 activations and Helium: eight elements of four windows
 * at a time. */

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "conv_few_mve.h"

TINYML_ASSEMBLY static void conv_few_mve_s16_apply(struct conv_few_mve_walk *walk TINYML_UNSEEN)
{
	/* clang-format off */
#define STEP(multiply)                                                                             \
	"vldrh.16 q0, [r2], #16\n\t"                                                               \
	"vldrb.s16 q1, [r7], #8\n\t"                                                               \
	"vldrh.u16 q2, [r1, q0, uxtw #1]\n\t"                                                      \
	multiply ".s16 r4, q1, q2\n\t"                                                             \
	"vldrh.u16 q3, [r3, q0, uxtw #1]\n\t"                                                      \
	multiply ".s16 r6, q1, q3\n\t"                                                             \
	"vldrh.u16 q2, [r5, q0, uxtw #1]\n\t"                                                      \
	multiply ".s16 r8, q1, q2\n\t"                                                             \
	"vldrh.u16 q3, [r9, q0, uxtw #1]\n\t"                                                      \
	multiply ".s16 r10, q1, q3\n\t"
	__asm__ volatile(CONV_FEW_MVE(STEP, "vstrht.32", "2"));
	/* clang-format on */
#undef STEP
}

void tinyml_conv_few_mve_s16(const struct tinyml_conv_few_mve *p, const int16_t *x, int16_t *y,
			     void *scratch)
{
	TINYML_ASSERT(p->round_once && p->in_zero == 0);
	conv_few_mve_convolve(p, (const int8_t *)x, (int8_t *)y, scratch, 2,
			      conv_few_mve_s16_apply);
}

#endif /* TINYML_CORE_MVE */
