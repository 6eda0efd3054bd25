/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * For conv_short_dsp_s8.c: one window times four filters, two times two, and four times one, in
 * assembly. A word of a window is four elements: the even ones, then the odd ones, meet words of
 * weights.
 */

#ifndef TINYML_CONV_SHORT_LOOPS_DSP_S8_H_
#define TINYML_CONV_SHORT_LOOPS_DSP_S8_H_

#include <tinyml/conv.h>

#include "../weighted/assembly.h"

TINYML_OFFSET(struct tinyml_conv_short_dsp_walk, x, 0);
TINYML_OFFSET(struct tinyml_conv_short_dsp_walk, y, 4);
TINYML_OFFSET(struct tinyml_conv_short_dsp_walk, blocks, 8);
TINYML_OFFSET(struct tinyml_conv_short_dsp_walk, step, 12);
TINYML_OFFSET(struct tinyml_conv_short_dsp_walk, out_step, 16);
TINYML_OFFSET(struct tinyml_conv_short_dsp_walk, filters, 20);
TINYML_OFFSET(struct tinyml_conv_short_dsp_walk, words, 24);
TINYML_OFFSET(struct tinyml_conv_short_dsp_walk, skip, 28);
TINYML_OFFSET(struct tinyml_conv_short_dsp_walk, end, 32);
TINYML_OFFSET(struct tinyml_conv_short_dsp_walk, twice_zero, 36);

/* clang-format off */

/* A word of a window in r2 and r3. */
#define WORD(place)                                                                                \
	"ldr r3, [r0" place "\n\t"                                                                 \
	"sxtb16 r2, r3\n\t"                                                                        \
	"sxtb16 r3, r3, ror #8\n\t"

/* Its products with the weights of two filters, or of one. */
#define TIMES_TWO(a, b)                                                                            \
	"smlad " a ", r2, r8, " a "\n\t"                                                           \
	"smlad " b ", r2, r10, " b "\n\t"                                                          \
	"smlad " a ", r3, r9, " a "\n\t"                                                           \
	"smlad " b ", r3, r11, " b "\n\t"
#define TIMES_ONE(a)                                                                               \
	"smlad " a ", r2, r8, " a "\n\t"                                                           \
	"smlad " a ", r3, r9, " a "\n\t"

#define SCALED(round, sign, a, factor)                                                             \
	"smmla" round " " a ", " a ", " factor ", " a "\n\t"                                       \
	sign(a)
#define AS_IT_IS(a)  ""
#define FROM_ZERO(a) "add " a ", " a ", " a ", asr #31\n\t" /* negative halves */

/* An exponent is the lowest byte of r3, twice the zero point is in r12. */
#define SHIFTED(a) "asr " a ", " a ", r3\n\t"
#define NEXT       "lsr r3, r3, #8\n\t"
#define SATURATED(a)                                                                               \
	"add " a ", " a ", r12\n\t"                                                                \
	"ssat " a ", #8, " a ", asr #1\n\t"

#define FOURS(name, round, sign)                                                                   \
	TINYML_ASSEMBLY void name(void *walk TINYML_UNSEEN)               \
	{                                                                                          \
		__asm__ volatile(                                                                  \
			"push {r4-r11, lr}\n\t"                                                    \
			"mov lr, r0\n\t"                                                           \
			"ldr r0, [lr]\n"                                                           \
			"1:\n\t" /* a window */                                                    \
			"ldrd r1, r12, [lr, #20]\n\t"                                              \
			"ldmia r1!, {r4-r7}\n"                                                     \
			"2:\n\t" /* a word */                                                      \
			WORD("], #4")                                                              \
			"ldmia r1!, {r8-r11}\n\t"                                                  \
			TIMES_TWO("r4", "r5")                                                      \
			"ldmia r1!, {r8-r11}\n\t"                                                  \
			TIMES_TWO("r6", "r7")                                                      \
			"subs r12, #1\n\t"                                                         \
			"bne 2b\n\t"                                                               \
			"ldrd r12, r2, [lr, #24]\n\t" /* the next row */                           \
			"ldr r3, [lr, #32]\n\t"                                                    \
			"add r0, r2\n\t"                                                           \
			"cmp r1, r3\n\t"                                                           \
			"bne 2b\n\t"                                                               \
			"ldmia r1!, {r8-r11}\n\t"                                                  \
			"ldr r3, [r1]\n\t"                                                         \
			"ldr r12, [lr, #36]\n\t"                                                   \
			SCALED(round, sign, "r4", "r8")                                            \
			SCALED(round, sign, "r5", "r9")                                            \
			SCALED(round, sign, "r6", "r10")                                           \
			SCALED(round, sign, "r7", "r11")                                           \
			SHIFTED("r4") NEXT                                                         \
			SHIFTED("r5") NEXT                                                         \
			SHIFTED("r6") NEXT                                                         \
			SHIFTED("r7")                                                              \
			"ldm lr, {r0-r3, r8}\n\t"                                                  \
			SATURATED("r4")                                                            \
			SATURATED("r5")                                                            \
			SATURATED("r6")                                                            \
			SATURATED("r7")                                                            \
			"strb r4, [r1]\n\t"                                                        \
			"strb r5, [r1, #1]\n\t"                                                    \
			"strb r6, [r1, #2]\n\t"                                                    \
			"strb r7, [r1, #3]\n\t"                                                    \
			"add r0, r3\n\t"                                                           \
			"add r1, r8\n\t"                                                           \
			"subs r2, #1\n\t"                                                          \
			"stm lr, {r0-r2}\n\t"                                                      \
			"bne 1b\n\t"                                                               \
			"pop {r4-r11, pc}\n\t");                                                   \
	}

#define TWOS(name, round, sign)                                                                    \
	TINYML_ASSEMBLY void name(void *walk TINYML_UNSEEN)               \
	{                                                                                          \
		__asm__ volatile(                                                                  \
			"push {r0, r4-r11, lr}\n\t"                                                \
			"mov r2, r0\n\t"                                                           \
			"ldr r0, [r2]\n\t"                                                         \
			"ldr lr, [r2, #12]\n"                                                      \
			"1:\n\t" /* two windows */                                                 \
			"ldr r2, [sp]\n\t"                                                         \
			"ldrd r1, r12, [r2, #20]\n\t"                                              \
			"ldmia r1!, {r4, r5}\n\t"                                                  \
			"mov r6, r4\n\t"                                                           \
			"mov r7, r5\n"                                                             \
			"2:\n\t" /* a word */                                                      \
			"ldmia r1!, {r8-r11}\n\t"                                                  \
			WORD(", lr]")                                                              \
			TIMES_TWO("r6", "r7")                                                      \
			WORD("], #4")                                                              \
			TIMES_TWO("r4", "r5")                                                      \
			"subs r12, #1\n\t"                                                         \
			"bne 2b\n\t"                                                               \
			"ldr r3, [sp]\n\t" /* the next row */                                      \
			"ldrd r12, r2, [r3, #24]\n\t"                                              \
			"ldr r3, [r3, #32]\n\t"                                                    \
			"add r0, r2\n\t"                                                           \
			"cmp r1, r3\n\t"                                                           \
			"bne 2b\n\t"                                                               \
			"ldr r10, [sp]\n\t"                                                        \
			"ldmia r1, {r2, r8, r9}\n\t"                                               \
			"ldr r12, [r10, #36]\n\t"                                                  \
			SCALED(round, sign, "r4", "r2")                                            \
			SCALED(round, sign, "r6", "r2")                                            \
			SCALED(round, sign, "r5", "r8")                                            \
			SCALED(round, sign, "r7", "r8")                                            \
			"mov r3, r9\n\t"                                                           \
			SHIFTED("r4")                                                              \
			SHIFTED("r6") NEXT                                                         \
			SHIFTED("r5")                                                              \
			SHIFTED("r7")                                                              \
			"ldm r10, {r0-r3, r8}\n\t"                                                 \
			SATURATED("r4")                                                            \
			SATURATED("r5")                                                            \
			SATURATED("r6")                                                            \
			SATURATED("r7")                                                            \
			"strb r4, [r1]\n\t"                                                        \
			"strb r5, [r1, #1]\n\t"                                                    \
			"add r1, r8\n\t"                                                           \
			"strb r6, [r1]\n\t"                                                        \
			"strb r7, [r1, #1]\n\t"                                                    \
			"add r0, r0, r3, lsl #1\n\t"                                               \
			"add r1, r8\n\t"                                                           \
			"subs r2, #1\n\t"                                                          \
			"stm r10, {r0-r2}\n\t"                                                     \
			"bne 1b\n\t"                                                               \
			"pop {r0, r4-r11, pc}\n\t");                                               \
	}

#define ONES(name, round, sign)                                                                    \
	TINYML_ASSEMBLY void name(void *walk TINYML_UNSEEN)               \
	{                                                                                          \
		__asm__ volatile(                                                                  \
			"push {r0, r4-r11, lr}\n\t"                                                \
			"mov r2, r0\n\t"                                                           \
			"ldr r0, [r2]\n\t"                                                         \
			"ldr r10, [r2, #12]\n\t"                                                   \
			"lsl r11, r10, #1\n\t"                                                     \
			"add lr, r11, r10\n"                                                       \
			"1:\n\t" /* four windows */                                                \
			"ldr r2, [sp]\n\t"                                                         \
			"ldrd r1, r12, [r2, #20]\n\t"                                              \
			"ldr r4, [r1], #4\n\t"                                                     \
			"mov r5, r4\n\t"                                                           \
			"mov r6, r4\n\t"                                                           \
			"mov r7, r4\n"                                                             \
			"2:\n\t" /* a word */                                                      \
			"ldrd r8, r9, [r1], #8\n\t"                                                \
			WORD(", r10]")                                                             \
			TIMES_ONE("r5")                                                            \
			WORD(", r11]")                                                             \
			TIMES_ONE("r6")                                                            \
			WORD(", lr]")                                                              \
			TIMES_ONE("r7")                                                            \
			WORD("], #4")                                                              \
			TIMES_ONE("r4")                                                            \
			"subs r12, #1\n\t"                                                         \
			"bne 2b\n\t"                                                               \
			"ldr r3, [sp]\n\t" /* the next row */                                      \
			"ldrd r12, r2, [r3, #24]\n\t"                                              \
			"ldr r3, [r3, #32]\n\t"                                                    \
			"add r0, r2\n\t"                                                           \
			"cmp r1, r3\n\t"                                                           \
			"bne 2b\n\t"                                                               \
			"ldr r9, [sp]\n\t"                                                         \
			"ldmia r1, {r2, r3}\n\t"                                                   \
			"ldr r12, [r9, #36]\n\t"                                                   \
			SCALED(round, sign, "r4", "r2")                                            \
			SCALED(round, sign, "r5", "r2")                                            \
			SCALED(round, sign, "r6", "r2")                                            \
			SCALED(round, sign, "r7", "r2")                                            \
			SHIFTED("r4")                                                              \
			SHIFTED("r5")                                                              \
			SHIFTED("r6")                                                              \
			SHIFTED("r7")                                                              \
			"ldm r9, {r0-r3, r8}\n\t"                                                  \
			SATURATED("r4")                                                            \
			SATURATED("r5")                                                            \
			SATURATED("r6")                                                            \
			SATURATED("r7")                                                            \
			"strb r4, [r1]\n\t"                                                        \
			"strb r5, [r1, r8]\n\t"                                                    \
			"add r1, r1, r8, lsl #1\n\t"                                               \
			"strb r6, [r1]\n\t"                                                        \
			"strb r7, [r1, r8]\n\t"                                                    \
			"add r0, r0, r3, lsl #2\n\t"                                               \
			"add r1, r1, r8, lsl #1\n\t"                                                           \
			"subs r2, #1\n\t"                                                          \
			"stm r9, {r0-r2}\n\t"                                                      \
			"bne 1b\n\t"                                                               \
			"pop {r0, r4-r11, pc}\n\t");                                               \
	}

FOURS(tinyml_conv_short_dsp_fours_once, "", AS_IT_IS)
FOURS(tinyml_conv_short_dsp_fours_twice, "r", FROM_ZERO)
TWOS(tinyml_conv_short_dsp_twos_once, "", AS_IT_IS)
TWOS(tinyml_conv_short_dsp_twos_twice, "r", FROM_ZERO)
ONES(tinyml_conv_short_dsp_ones_once, "", AS_IT_IS)
ONES(tinyml_conv_short_dsp_ones_twice, "r", FROM_ZERO)
/* clang-format on */
#undef FOURS
#undef TWOS
#undef ONES

#endif /* TINYML_CONV_SHORT_LOOPS_DSP_S8_H_ */
