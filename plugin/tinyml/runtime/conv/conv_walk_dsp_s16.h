/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * The walk of three windows over filters with int16 activations and DSP instructions: two filters
 * at a time.
 *
 * A word has two elements of both filters: a half of it is a + 128 + 256 * b. Words as they are
 * make one sum, and their upper bytes another, that of b: only these are widened. A sum of a is the
 * first one less 256 of the second and 128 of the inputs, modulo 2^32, which it is known to fit
 * into.
 */

#ifndef TINYML_CONV_WALK_DSP_S16_H_
#define TINYML_CONV_WALK_DSP_S16_H_

#include <stdint.h>

#include "../weighted/assembly.h"
#include "../weighted/dsp_s16.h"
#include "conv_columns_dsp_s16.h"

/* What the loop over pairs of filters reads. It keeps a copy on the stack. */
struct conv_walk_dsp_s16 {
	const uint32_t *columns;
	const int32_t *bias;
	const uint32_t *columns_end;
	int32_t skipped; /* bytes of code in the first turn over the elements */
	const int32_t *factor;
	int32_t rare;       /* SINGLE, SHIFTS and LIMITS */
	int16_t *y;         /* the outputs at the first window */
	int32_t second;     /* bytes from these to those at the second window */
	int32_t third;      /* and at the third one; 0: there is none */
	const int16_t *end; /* of the outputs at the first window */
	const uint8_t *shift;
	uint32_t low; /* in both halves of the word */
	uint32_t high;
};
TINYML_OFFSET(struct conv_walk_dsp_s16, columns, 0);
TINYML_OFFSET(struct conv_walk_dsp_s16, bias, 4);
TINYML_OFFSET(struct conv_walk_dsp_s16, columns_end, 8);
TINYML_OFFSET(struct conv_walk_dsp_s16, skipped, 12);
TINYML_OFFSET(struct conv_walk_dsp_s16, factor, 16);
TINYML_OFFSET(struct conv_walk_dsp_s16, rare, 20);
TINYML_OFFSET(struct conv_walk_dsp_s16, y, 24);
TINYML_OFFSET(struct conv_walk_dsp_s16, second, 28);
TINYML_OFFSET(struct conv_walk_dsp_s16, third, 32);
TINYML_OFFSET(struct conv_walk_dsp_s16, end, 36);
TINYML_OFFSET(struct conv_walk_dsp_s16, shift, 40);
TINYML_OFFSET(struct conv_walk_dsp_s16, low, 44);
TINYML_OFFSET(struct conv_walk_dsp_s16, high, 48);

#define SINGLE 1 /* a filter whose pair is zeros, and has no outputs */
#define SHIFTS 2 /* factors do not contain them */
#define LIMITS 4 /* other limits than 0 and 32767 */

#define TURN        8  /* times four elements: a turn of the loop over them */
#define FOUR_BYTES  68 /* of the code for four elements */
#define CHECK_BYTES 6  /* and for whether there are more */
#define ALONE_BYTES 44 /* of the code for a window alone, before that */

/* The outputs of pairs of filters at up to three windows. Those of windows that there are not go
 * where those of the first window go, which are written last. Returns what follows the weights. */
TINYML_ASSEMBLY static const uint32_t *
conv_walk_dsp_s16_filters(const uint32_t *weights TINYML_UNSEEN,
			  const struct conv_walk_dsp_s16 *walk TINYML_UNSEEN)
{
	/* clang-format off */
#define TWO(two)                                                                                   \
	"ldm r1!, {r10, r11, r12}\n\t"                                                             \
	"smlad r4, " two ", r10, r4\n\t"                                                           \
	"smlad r5, " two ", r11, r5\n\t"                                                           \
	"smlad r6, " two ", r12, r6\n\t"                                                           \
	"sxtb16 " two ", " two ", ror #8\n\t"                                                      \
	"smlad r7, " two ", r10, r7\n\t"                                                           \
	"smlad r8, " two ", r11, r8\n\t"                                                           \
	"smlad r9, " two ", r12, r9\n\t"
	/* The second sums begin with that in r7, the bias. */
#define FIRST                                                                                      \
	"ldrd r2, r3, [r0], #8\n\t"                                                                \
	"ldm r1!, {r10, r11, r12}\n\t"                                                             \
	"smlad r4, r2, r10, r4\n\t"                                                                \
	"smlad r5, r2, r11, r5\n\t"                                                                \
	"smlad r6, r2, r12, r6\n\t"                                                                \
	"sxtb16 r2, r2, ror #8\n\t"                                                                \
	"smlad r8, r2, r11, r7\n\t"                                                                \
	"smlad r9, r2, r12, r7\n\t"                                                                \
	"smlad r7, r2, r10, r7\n\t"                                                                \
	TWO("r3")
#define STEP                                                                                       \
	"ldrd r2, r3, [r0], #8\n\t"                                                                \
	TWO("r2")                                                                                  \
	TWO("r3")
	/* The sums of a filter with its factor; the shift is in the lowest byte of r12. */
#define SCALE(factor, a, b, c)                                                                     \
	"mov r3, #1\n\t"                                                                           \
	"lsl r3, r3, r12\n\t"                                                                      \
	"lsr r3, r3, #1\n\t"                                                                       \
	"smmla " a ", " a ", " factor ", r3\n\t"                                                   \
	"smmla " b ", " b ", " factor ", r3\n\t"                                                   \
	"smmla " c ", " c ", " factor ", r3\n\t"                                                   \
	"asr " a ", " a ", r12\n\t"                                                                \
	"asr " b ", " b ", r12\n\t"                                                                \
	"asr " c ", " c ", r12\n\t"
	/* The same with factors that need no shift. */
#define ROUND(factor, a, b, c)                                                                     \
	"smmulr " a ", " a ", " factor "\n\t"                                                      \
	"smmulr " b ", " b ", " factor "\n\t"                                                      \
	"smmulr " c ", " c ", " factor "\n\t"
	/* Two outputs become a word. */
#define LIMIT(saturate, bits, a, b)                                                                \
	saturate " " a ", #" bits ", " a "\n\t"                                                    \
	saturate " " b ", #" bits ", " b "\n\t"                                                    \
	"pkhbt " a ", " a ", " b ", lsl #16\n\t"
#define ALL(saturate, bits)                                                                        \
	LIMIT(saturate, bits, "r4", "r7")                                                          \
	LIMIT(saturate, bits, "r5", "r8")                                                          \
	LIMIT(saturate, bits, "r6", "r9")
#define CLAMP(two)                                                                                 \
	"ssub16 r3, " two ", r1\n\t"                                                               \
	"sel " two ", " two ", r1\n\t"                                                             \
	"ssub16 r3, r2, " two "\n\t"                                                               \
	"sel " two ", " two ", r2\n\t"
	__asm__ volatile(
		".balign 4\n\t" /* for ADR, whatever compilers align functions to */
		"push {r4-r11, lr}\n\t"
		"mov lr, r1\n\t"
		"ldr r2, [lr, #48]\n\t"
		"push {r2}\n\t"
		"ldm lr, {r1-r12}\n\t"
		"adr.w lr, 2f\n\t"
		"add r4, lr\n\t"
		"orr r4, #1\n\t" /* Thumb */
		"push {r1-r12}\n"
		"1:\n\t" /* a pair of filters */
		"ldrd r1, r2, [sp]\n\t"
		"ldr lr, [sp, #8]\n\t"
		"ldrd r3, r7, [r2], #8\n\t"
		"ldm r1!, {r4, r5, r6}\n\t"
		"str r2, [sp, #4]\n\t"
		"add r3, r3, r7, lsl #8\n\t"
		"add r4, r3\n\t"
		"add r5, r3\n\t"
		"add r6, r3\n\t"
		FIRST
		"ldr pc, [sp, #12]\n"
		"23:\n\t" /* four elements of a window alone */
		"ldrd r2, r3, [r0], #8\n\t"
		"ldr r10, [r1], #12\n\t"
		"ldr r11, [r1], #12\n\t"
		"smlad r4, r2, r10, r4\n\t"
		"sxtb16 r2, r2, ror #8\n\t"
		"smlad r4, r3, r11, r4\n\t"
		"sxtb16 r3, r3, ror #8\n\t"
		"smlad r7, r2, r10, r7\n\t"
		"smlad r7, r3, r11, r7\n\t"
		"cmp r1, lr\n\t"
		"bne 23b\n\t"
		"b.w 22f\n"
		"2:\n\t"
		TINYML_CODE_BYTES("23b", "2b", ALONE_BYTES)
		STEP
		"20:\n\t"
		STEP
		STEP
		STEP
		STEP
		STEP
		STEP
		STEP
		TINYML_CODE_BYTES("2b", "20b", FOUR_BYTES)
		"21:\n\t"
		"cmp r1, lr\n\t"
		"bne.w 2b\n\t"
		"22:\n\t"
		TINYML_CODE_BYTES("21b", "22b", CHECK_BYTES)
		"ldrd r12, r3, [sp, #16]\n\t"
		"sub r4, r4, r7, lsl #8\n\t"
		"sub r5, r5, r8, lsl #8\n\t"
		"ldrd r1, r2, [r12], #8\n\t"
		"sub r6, r6, r9, lsl #8\n\t"
		"str r12, [sp, #16]\n\t"
		"cbz r3, 3f\n\t"
		"b 6f\n"
		"3:\n\t"
		ROUND("r1", "r4", "r5", "r6")
		ROUND("r2", "r7", "r8", "r9")
		ALL("usat", "15")
		"4:\n\t"
		"add r7, sp, #24\n\t"
		"ldm r7, {r1, r2, r3, r12}\n\t"
		"add r8, r1, #4\n\t"
		"str r8, [sp, #24]\n\t"
		"str r6, [r1, r3]\n\t"
		"str r5, [r1, r2]\n\t"
		"cmp r8, r12\n\t"
		"str r4, [r1]\n\t"
		"bne 1b\n"
		"5:\n\t"
		"add sp, #52\n\t"
		"pop {r4-r11, pc}\n"
		"6:\n\t"
		"tst r3, #2\n\t"
		"bne 7f\n\t"
		ROUND("r1", "r4", "r5", "r6")
		ROUND("r2", "r7", "r8", "r9")
		"b 8f\n"
		"7:\n\t"
		"ldr r3, [sp, #40]\n\t"
		"ldrh r12, [r3], #2\n\t"
		"str r3, [sp, #40]\n\t"
		SCALE("r1", "r4", "r5", "r6")
		"lsr r12, r12, #8\n\t"
		SCALE("r2", "r7", "r8", "r9")
		"ldr r3, [sp, #20]\n"
		"8:\n\t"
		"tst r3, #4\n\t"
		"bne 9f\n\t"
		ALL("usat", "15")
		"b 10f\n"
		"9:\n\t"
		"ldrd r1, r2, [sp, #44]\n\t"
		ALL("ssat", "16")
		CLAMP("r4")
		CLAMP("r5")
		CLAMP("r6")
		"10:\n\t"
		"ldr r12, [sp, #20]\n\t"
		"lsls r12, r12, #31\n\t" /* SINGLE */
		"beq 4b\n\t"
		"add r7, sp, #24\n\t"
		"ldm r7, {r1, r2, r3}\n\t"
		"strh r6, [r1, r3]\n\t"
		"strh r5, [r1, r2]\n\t"
		"strh r4, [r1]\n\t"
		"b 5b\n\t");
	/* clang-format on */
#undef TWO
#undef FIRST
#undef STEP
#undef SCALE
#undef ROUND
#undef LIMIT
#undef ALL
#undef CLAMP
}

#endif /* TINYML_CONV_WALK_DSP_S16_H_ */
