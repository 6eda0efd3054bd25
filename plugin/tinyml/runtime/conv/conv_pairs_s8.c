/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions with DSP instructions and two filters in one int16 (pairs_s8.h): two windows meet
 * four filters at a time, the last one or two filters as a single pair. */

#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include "../weighted/dsp_s8.h"

#define CONV_PAIRS_DOT         "tinyml_conv_pairs_dot"
#define CONV_PAIRS_DOT_TWO     tinyml_conv_pairs_dot_two
#define CONV_PAIRS_FOURS_ONCE  tinyml_conv_pairs_fours_once
#define CONV_PAIRS_FOURS_TWICE tinyml_conv_pairs_fours_twice
#define CONV_PAIRS_FOURS       /* conv_groups_dsp_s8.c calls them */
#include "conv_pairs_s8.h"

/* Words of a block of four filters, and of a pair. */
static inline int32_t conv_pairs_words_of_four(const struct group *g)
{
	return g->column + 9;
}

static inline int32_t conv_pairs_words_of_two(const struct group *g)
{
	return g->column / 2 + 5;
}

static int32_t conv_stream_group_words(const struct group *g)
{
	const int32_t rest = g->out_c % 4;

	return (g->out_c / 4 + (rest == 3)) * conv_pairs_words_of_four(g) +
	       (rest == 1 || rest == 2 ? conv_pairs_words_of_two(g) : 0);
}

/* The sums of four filters at two windows in r4 to r11, filter by filter. Takes filters (r0),
 * columns (r1) and the end of the columns (r2); r0 is what follows the weights. Assembly only.
 *
 * All of the registers are used: r4, r5 and r8, r9 add up pairs (A), r6, r7 and r10, r11 their
 * second filters (Q). A step takes two elements; four elements of the columns are 16 bytes, and
 * their code is 96 bytes long, so that the loop over 16 elements can be entered in between. */
#define CODE_OF_A_STEP 48
void tinyml_conv_pairs_dot(void);

__attribute__((naked, noinline, used)) void tinyml_conv_pairs_dot(void)
{
	/* clang-format off */
#define STEP                                                                                       \
	"ldrd r2, r3, [r0], #8\n\t"                                                                \
	"ldrd r12, lr, [r1], #8\n\t"                                                               \
	"smlad r4, r2, r12, r4\n\t"                                                                \
	"smlad r5, r2, lr, r5\n\t"                                                                 \
	"sxtb16 r2, r2\n\t"                                                                        \
	"smlad r8, r3, r12, r8\n\t"                                                                \
	"smlad r9, r3, lr, r9\n\t"                                                                 \
	"sxtb16 r3, r3\n\t"                                                                        \
	"smlad r6, r2, r12, r6\n\t"                                                                \
	"smlad r7, r2, lr, r7\n\t"                                                                 \
	"smlad r10, r3, r12, r10\n\t"                                                              \
	"smlad r11, r3, lr, r11\n\t"
	__asm__ volatile(
		"push {r2, lr}\n\t"
		"sub r12, r1, r2\n\t" /* less than 16 elements first: skip the others */
		"and r12, r12, #48\n\t"
		"add r12, r12, r12, lsl #1\n\t"
		"lsl r12, r12, #1\n\t" /* bytes of code: six for one of the columns */
		"ldmia r0!, {r2, r3, r6, r10}\n\t" /* biases */
		"add r4, r3, r2, lsl #8\n\t"
		"mov r5, r4\n\t"
		"add r8, r10, r6, lsl #8\n\t"
		"mov r9, r8\n\t"
		"mov r11, r10\n\t"
		"mov r6, r3\n\t"
		"mov r7, r3\n\t"
		"2:\n\t"
		"add pc, r12\n\t" /* from 4 bytes after this instruction */
		"nop\n\t"
		"1:\n\t"
		TINYML_CODE_BYTES("2b", "1b", 4)
		STEP
		STEP
		STEP
		STEP
		STEP
		STEP
		STEP
		STEP
		"3:\n\t"
		TINYML_CODE_BYTES("1b", "3b", 8 * CODE_OF_A_STEP)
		"ldr r12, [sp]\n\t"
		"cmp r1, r12\n\t"
		"bne 1b\n\t"
		"sub r4, r4, r6\n\t"
		"asr r4, r4, #8\n\t"
		"sub r5, r5, r7\n\t"
		"asr r5, r5, #8\n\t"
		"sub r8, r8, r10\n\t"
		"asr r8, r8, #8\n\t"
		"sub r9, r9, r11\n\t"
		"asr r9, r9, #8\n\t"
		"pop {r2, pc}\n\t");
	/* clang-format on */
#undef STEP
}

/* The same for a pair of filters, four elements at a time. */
TINYML_ASSEMBLY const uint32_t *tinyml_conv_pairs_dot_two(const uint32_t *filters TINYML_UNSEEN,
							  const uint32_t *columns TINYML_UNSEEN,
							  const uint32_t *end TINYML_UNSEEN,
							  int32_t *sums TINYML_UNSEEN)
{
	/* clang-format off */
	__asm__ volatile(
		"push {r3-r11, lr}\n\t"
		"ldmia r0!, {r3, r6}\n\t"
		"add r4, r6, r3, lsl #8\n\t"
		"mov r5, r4\n\t"
		"mov r7, r6\n\t"
		"1:\n\t"
		"ldrd r3, r12, [r0], #8\n\t"
		"ldmia r1!, {r8-r11}\n\t"
		"smlad r4, r3, r8, r4\n\t"
		"smlad r5, r3, r9, r5\n\t"
		"sxtb16 r3, r3\n\t"
		"smlad r4, r12, r10, r4\n\t"
		"smlad r5, r12, r11, r5\n\t"
		"sxtb16 r12, r12\n\t"
		"smlad r6, r3, r8, r6\n\t"
		"smlad r7, r3, r9, r7\n\t"
		"cmp r1, r2\n\t"
		"smlad r6, r12, r10, r6\n\t"
		"smlad r7, r12, r11, r7\n\t"
		"bne 1b\n\t"
		"sub r4, r4, r6\n\t"
		"asr r4, r4, #8\n\t"
		"sub r5, r5, r7\n\t"
		"asr r5, r5, #8\n\t"
		"pop {r3}\n\t"
		"stmia r3, {r4-r7}\n\t"
		"pop {r4-r11, pc}\n\t");
	/* clang-format on */
}

#include "conv_two_windows_s8.h"

void tinyml_conv_pairs_s8(const struct tinyml_conv_stream_s8 *p, const int8_t *x, int8_t *y,
			  void *scratch)
{
	conv_stream_convolve(p, x, y, scratch);
}

#endif /* TINYML_CORE_DSP */
