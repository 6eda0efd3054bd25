/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The walk of depthwise_halves_s8.c for Armv6-M: most instructions reach eight registers only, and
 * multiplications replace a factor. */

#ifndef TINYML_DEPTHWISE_HALVES_ARMV6M_H_
#define TINYML_DEPTHWISE_HALVES_ARMV6M_H_

#include "../weighted/output_armv6m.h"

/* The carry of a shift rounds what is added to P, so T needs no correction. */
#define ROUNDING 0u

/* Outputs are made as uint8. */
#define TWICE_ZERO(zero) (2 * ((zero) + 128) + 1)

static inline void depthwise_halves_set_factor(struct walk *walk, int32_t multiplier, int32_t shift)
{
	walk->factor_low = multiplier & 0xffff;
	walk->factor_high = multiplier >> 16;
	walk->exponent = ~shift;
}

/* r0 what the walk is given, r1 elements, r2 P, r3 and r4 weights, r5 to r7 products; r8 T, r9
 * below, r10 twice_zero, r11 y, r12 the third product of the first row, lr down. */
/* clang-format off */
#define APART(product)                                                                             \
	"add r8, " product "\n\t"                                                                  \
	"asrs " product ", " product ", #16\n\t"                                                   \
	"adcs r2, " product "\n\t"
#define WINDOW_3X3                                                                                 \
	"ldm r0!, {r2, r3}\n\t"                                                                    \
	"mov r8, r3\n\t"                                                                           \
	"ldm r1!, {r5-r7}\n\t"                                                                     \
	"ldm r0!, {r3, r4}\n\t"                                                                    \
	"muls r5, r3, r5\n\t"                                                                      \
	"muls r6, r4, r6\n\t"                                                                      \
	"ldm r0!, {r3, r4}\n\t"                                                                    \
	"muls r7, r3, r7\n\t"                                                                      \
	"mov r12, r7\n\t"                                                                          \
	"adds r5, r5, r6\n\t"                                                                      \
	APART("r5")                                                                                \
	"add r1, lr\n\t"                                                                           \
	"ldm r1!, {r5-r7}\n\t"                                                                     \
	"muls r5, r4, r5\n\t"                                                                      \
	"ldm r0!, {r3, r4}\n\t"                                                                    \
	"muls r6, r3, r6\n\t"                                                                      \
	"muls r7, r4, r7\n\t"                                                                      \
	"adds r5, r5, r6\n\t"                                                                      \
	APART("r5")                                                                                \
	"add r7, r12\n\t"                                                                          \
	APART("r7")                                                                                \
	"add r1, lr\n\t"                                                                           \
	"ldm r1!, {r5-r7}\n\t"                                                                     \
	"ldm r0!, {r3, r4}\n\t"                                                                    \
	"muls r5, r3, r5\n\t"                                                                      \
	"muls r6, r4, r6\n\t"                                                                      \
	"ldm r0!, {r3}\n\t"                                                                        \
	"muls r7, r3, r7\n\t"                                                                      \
	"adds r5, r5, r6\n\t"                                                                      \
	APART("r5")                                                                                \
	APART("r7")

/* r7 is the end of a row of elements, r12 its length, r9 the end of the taps. */
#define WINDOW_ANY                                                                                 \
	"ldm r0!, {r2, r3}\n\t"                                                                    \
	"mov r8, r3\n\t"                                                                           \
	"adds r0, #92\n\t"                                                                         \
	"ldm r0!, {r3-r5}\n\t"                                                                     \
	"movs r0, r3\n\t"                                                                          \
	"mov r9, r4\n\t"                                                                           \
	"mov r12, r5\n\t"                                                                          \
	"5:\n\t"                                                                                   \
	"mov r7, r12\n\t"                                                                          \
	"adds r7, r7, r1\n\t"                                                                      \
	"6:\n\t"                                                                                   \
	"ldm r1!, {r5, r6}\n\t"                                                                    \
	"ldm r0!, {r3, r4}\n\t"                                                                    \
	"muls r5, r3, r5\n\t"                                                                      \
	"muls r6, r4, r6\n\t"                                                                      \
	"adds r5, r5, r6\n\t"                                                                      \
	APART("r5")                                                                                \
	"cmp r1, r7\n\t"                                                                           \
	"bne 6b\n\t"                                                                               \
	"add r1, lr\n\t"                                                                           \
	"cmp r0, r9\n\t"                                                                           \
	"bne 5b\n\t"                                                                               \
	"ldr r0, [sp, #16]\n\t"                                                                    \
	"ldr r3, [r0, #60]\n\t"                                                                    \
	"mov r9, r3\n\t"                                                                           \
	"adds r0, #44\n\t"

#define OUTPUT(add, sign, sum)                                                                     \
	"sxth r1, " sum "\n\t"                                                                     \
	"subs r0, " sum ", r1\n\t"                                                                 \
	TINYML_OUTPUT_ARMV6M(add, sign)                                                            \
	"mov r1, r11\n\t"
#define WALK(name, window, add, sign)                                                              \
	TINYML_ASSEMBLY static void name(struct walk *walk TINYML_UNSEEN)                          \
	{                                                                                          \
		__asm__ volatile(                                                                  \
			".syntax unified\n\t"                                                      \
			"push {r0, r4-r7, lr}\n\t"                                                 \
			"mov r4, r8\n\t"                                                           \
			"mov r5, r9\n\t"                                                           \
			"mov r6, r10\n\t"                                                          \
			"mov r7, r11\n\t"                                                          \
			"push {r4-r7}\n\t"                                                         \
			"ldr r1, [r0, #60]\n\t"                                                    \
			"mov r9, r1\n\t"                                                           \
			"ldr r1, [r0, #56]\n\t"                                                    \
			"mov r10, r1\n\t"                                                          \
			"ldr r1, [r0, #76]\n\t"                                                    \
			"mov lr, r1\n\t"                                                           \
			"1:\n\t"                                                                   \
			"ldr r1, [r0, #84]\n\t"                                                    \
			"mov r11, r1\n\t"                                                          \
			"ldr r1, [r0, #80]\n\t"                                                    \
			"2:\n\t"                                                                   \
			window                                                                     \
			"mov r12, r1\n\t"                                                          \
			"ldm r0!, {r3, r6, r7}\n\t"                                                \
			"movs r4, r2\n\t"                                                          \
			"lsls r2, r2, #16\n\t"                                                     \
			"mov r5, r8\n\t"                                                           \
			"subs r5, r5, r2\n\t"                                                      \
			OUTPUT(add, sign, "r4")                                                    \
			"mov r2, r9\n\t"                                                           \
			"strb r0, [r1, r2]\n\t"                                                    \
			OUTPUT(add, sign, "r5")                                                    \
			"strb r0, [r1]\n\t"                                                        \
			"ldr r0, [sp, #16]\n\t"                                                    \
			"mov r1, r12\n\t"                                                          \
			"ldr r3, [r0, #64]\n\t"                                                    \
			"adds r1, r1, r3\n\t"                                                      \
			"ldr r3, [r0, #68]\n\t"                                                    \
			"add r11, r3\n\t"                                                          \
			"ldr r3, [r0, #72]\n\t"                                                    \
			"cmp r1, r3\n\t"                                                           \
			"bne 2b\n\t"                                                               \
			"ldr r4, [r0, #88]\n\t"                                                    \
			"adds r3, r3, r4\n\t"                                                      \
			"str r3, [r0, #72]\n\t"                                                    \
			"ldr r3, [r0, #80]\n\t"                                                    \
			"adds r3, r3, r4\n\t"                                                      \
			"str r3, [r0, #80]\n\t"                                                    \
			"ldr r3, [r0, #84]\n\t"                                                    \
			"ldr r4, [r0, #92]\n\t"                                                    \
			"adds r3, r3, r4\n\t"                                                      \
			"str r3, [r0, #84]\n\t"                                                    \
			"ldr r3, [r0, #96]\n\t"                                                    \
			"subs r3, #1\n\t"                                                          \
			"str r3, [r0, #96]\n\t"                                                    \
			"beq 3f\n\t"                                                               \
			"b 1b\n\t"                                                                 \
			"3:\n\t"                                                                   \
			"pop {r4-r7}\n\t"                                                          \
			"mov r8, r4\n\t"                                                           \
			"mov r9, r5\n\t"                                                           \
			"mov r10, r6\n\t"                                                          \
			"mov r11, r7\n\t"                                                          \
			"pop {r0, r4-r7, pc}\n\t");                                                \
	}
/* clang-format on */
WALK(depthwise_halves_walk_3x3_once, WINDOW_3X3, "adds", "")
WALK(depthwise_halves_walk_3x3_twice, WINDOW_3X3, "adcs", TINYML_FROM_ZERO_ARMV6M)
WALK(depthwise_halves_walk_any_once, WINDOW_ANY, "adds", "")
WALK(depthwise_halves_walk_any_twice, WINDOW_ANY, "adcs", TINYML_FROM_ZERO_ARMV6M)
#undef WALK
#undef OUTPUT
#undef WINDOW_ANY
#undef WINDOW_3X3
#undef APART

#endif /* TINYML_DEPTHWISE_HALVES_ARMV6M_H_ */
