/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * The walk of a 3x3 kernel over a plane, two outputs at a time, in assembly: compilers keep half of
 * the values on the stack. Outputs have the limits of int8, lines at least two of them, and are one
 * or two elements apart.
 */

#ifndef TINYML_DEPTHWISE_3X3_DSP_S8_H_
#define TINYML_DEPTHWISE_3X3_DSP_S8_H_

#include <stdint.h>

#include "../weighted/dsp_s8.h"

/** What the walk is given. The assembly knows the order of the members. */
struct tinyml_walk_3x3 {
	int32_t bias;
	int32_t factor;
	int32_t twice_zero;
	int32_t odd;  /* whether a line has an odd number of outputs */
	int32_t down; /* from one row of the plane to the next, in bytes */
	int32_t step; /* from one output to the next */
	int16x2_t outer[3];
	uint32_t middle_0_1;        /* of the first row below that of the second */
	uint32_t middle_2_exponent; /* of the third row above the exponent */
	const int8_t *x;
	int8_t *y;
	int32_t length; /* of the pairs of a line, in bytes of the plane */
	int32_t x_line; /* from one line to the next, in the plane and in the output */
	int32_t y_line;
	int32_t lines;
};
TINYML_OFFSET(struct tinyml_walk_3x3, bias, 0);
TINYML_OFFSET(struct tinyml_walk_3x3, factor, 4);
TINYML_OFFSET(struct tinyml_walk_3x3, twice_zero, 8);
TINYML_OFFSET(struct tinyml_walk_3x3, odd, 12);
TINYML_OFFSET(struct tinyml_walk_3x3, down, 16);
TINYML_OFFSET(struct tinyml_walk_3x3, step, 20);
TINYML_OFFSET(struct tinyml_walk_3x3, outer, 24);
TINYML_OFFSET(struct tinyml_walk_3x3, middle_0_1, 36);
TINYML_OFFSET(struct tinyml_walk_3x3, middle_2_exponent, 40);
TINYML_OFFSET(struct tinyml_walk_3x3, x, 44);
TINYML_OFFSET(struct tinyml_walk_3x3, y, 48);
TINYML_OFFSET(struct tinyml_walk_3x3, length, 52);
TINYML_OFFSET(struct tinyml_walk_3x3, x_line, 56);
TINYML_OFFSET(struct tinyml_walk_3x3, y_line, 60);
TINYML_OFFSET(struct tinyml_walk_3x3, lines, 64);

/* r0 x, r1 down, r2 y, r3 step, r4 to r6 outer, r7 and r8 middle, r9 and r10 sums, r11 even bytes,
 * r12 odd bytes, lr end of the line; on the stack bias, factor, twice_zero, odd, the structure. */

/* One row of neighbours: of a word's four elements, the first three are under the first window, the
 * last three under its neighbour. */
/* clang-format off */
#define TINYML_ROW_1(address, outer, half, middle)                                                 \
	"ldr r11, [" address "]\n\t"                                                               \
	"sxtb16 r12, r11, ror #8\n\t"                                                              \
	"sxtb16 r11, r11\n\t"                                                                      \
	"smlad r9, r11, " outer ", r9\n\t"                                                         \
	"smlab" half " r9, r12, " middle ", r9\n\t"                                                \
	"smlad r10, r12, " outer ", r10\n\t"                                                       \
	"smlat" half " r10, r11, " middle ", r10\n\t"
#define TINYML_ROWS_1                                                                              \
	TINYML_ROW_1("r0", "r4", "b", "r7")                                                        \
	TINYML_ROW_1("r0, r1", "r5", "t", "r7")                                                    \
	TINYML_ROW_1("r0, r1, lsl #1", "r6", "t", "r8")                                            \
	"adds r0, #2\n\t"

/* Two elements apart: the second window's outer taps are the even bytes of the word at x + 2. */
#define TINYML_ROW_2(address, outer, half, middle)                                                 \
	"ldr r11, [" address "]\n\t"                                                               \
	"sxtb16 r12, r11, ror #8\n\t"                                                              \
	"sxtb16 r11, r11\n\t"                                                                      \
	"smlad r9, r11, " outer ", r9\n\t"                                                         \
	"smlab" half " r9, r12, " middle ", r9\n\t"                                                \
	"smlat" half " r10, r12, " middle ", r10\n\t"
#define TINYML_OUTER_2(address, outer)                                                             \
	"ldr r11, [" address "]\n\t"                                                               \
	"sxtb16 r11, r11\n\t"                                                                      \
	"smlad r10, r11, " outer ", r10\n\t"
#define TINYML_ROWS_2                                                                              \
	TINYML_ROW_2("r0", "r4", "b", "r7")                                                        \
	TINYML_ROW_2("r0, r1", "r5", "t", "r7")                                                    \
	TINYML_ROW_2("r0, r1, lsl #1", "r6", "t", "r8")                                            \
	"adds r0, #2\n\t"                                                                          \
	TINYML_OUTER_2("r0", "r4")                                                                 \
	TINYML_OUTER_2("r0, r1", "r5")                                                             \
	TINYML_OUTER_2("r0, r1, lsl #1", "r6")                                                     \
	"adds r0, #2\n\t"

#define TINYML_ROUND_ONCE                                                                          \
	"smmla r9, r9, r11, r9\n\t"                                                                \
	"smmla r10, r10, r11, r10\n\t"
#define TINYML_ROUND_TWICE                                                                         \
	"smmlar r9, r9, r11, r9\n\t"                                                               \
	"smmlar r10, r10, r11, r10\n\t"                                                            \
	"add r9, r9, r9, asr #31\n\t" /* negative halves round away from zero */                   \
	"add r10, r10, r10, asr #31\n\t"

/* `stride` is what a line goes back by for a last odd output, which is computed with the one before
 * it. The second output of a pair is written first. */
#define TINYML_WALK_3X3(name, rows, stride, round)                                                 \
	TINYML_ASSEMBLY static void name(struct tinyml_walk_3x3 *walk TINYML_UNSEEN)               \
	{                                                                                          \
		__asm__ volatile(                                                                  \
			"push {r0, r4-r11, lr}\n\t"                                                \
			"ldmia r0!, {r4-r7}\n\t"                                                   \
			"push {r4-r7}\n\t"                                                         \
			"ldmia r0, {r1, r3-r8}\n\t"                                                \
			"1:\n\t"                                                                   \
			"ldr r11, [sp, #16]\n\t"                                                   \
			"ldr r0, [r11, #44]\n\t"                                                   \
			"ldr r2, [r11, #48]\n\t"                                                   \
			"ldr lr, [r11, #52]\n\t"                                                   \
			"add lr, lr, r0\n\t"                                                       \
			"2:\n\t"                                                                   \
			"ldr r9, [sp]\n\t"                                                         \
			"mov r10, r9\n\t"                                                          \
			rows                                                                       \
			"ldrd r11, r12, [sp, #4]\n\t"                                              \
			round                                                                      \
			"asr r9, r9, r8\n\t"                                                       \
			"asr r10, r10, r8\n\t"                                                     \
			"add r9, r12\n\t"                                                          \
			"add r10, r12\n\t"                                                         \
			"ssat r9, #8, r9, asr #1\n\t"                                              \
			"ssat r10, #8, r10, asr #1\n\t"                                            \
			"strb r10, [r2, r3]\n\t"                                                   \
			"strb r9, [r2]\n\t"                                                        \
			"add r2, r2, r3, lsl #1\n\t"                                               \
			"cmp r0, lr\n\t"                                                           \
			"blo 2b\n\t"                                                               \
			"bne 3f\n\t"                                                               \
			"ldr r11, [sp, #12]\n\t"                                                   \
			"cmp r11, #0\n\t"                                                          \
			"beq 3f\n\t"                                                               \
			"subs r0, #" stride "\n\t"                                                 \
			"subs r2, r2, r3\n\t"                                                      \
			"b 2b\n\t"                                                                 \
			"3:\n\t"                                                                   \
			"ldr r11, [sp, #16]\n\t"                                                   \
			"ldr r9, [r11, #44]\n\t"                                                   \
			"ldr r10, [r11, #48]\n\t"                                                  \
			"ldr r0, [r11, #56]\n\t"                                                   \
			"ldr r2, [r11, #60]\n\t"                                                   \
			"ldr r12, [r11, #64]\n\t"                                                  \
			"add r9, r0\n\t"                                                           \
			"add r10, r2\n\t"                                                          \
			"str r9, [r11, #44]\n\t"                                                   \
			"str r10, [r11, #48]\n\t"                                                  \
			"subs r12, #1\n\t"                                                         \
			"str r12, [r11, #64]\n\t"                                                  \
			"bne 1b\n\t"                                                               \
			"add sp, #20\n\t"                                                          \
			"pop {r4-r11, pc}\n\t");                                                   \
	}
/* clang-format on */

#endif /* TINYML_DEPTHWISE_3X3_DSP_S8_H_ */
