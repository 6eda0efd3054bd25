/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions with few filters and DSP instructions: rows of four windows are multiplied in words.
 */

#include <tinyml/conv.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#define ROW(row) (((row) + 3) & ~3)

#include "../weighted/dsp_s8.h"
#include "conv_few_windows.h"

#ifdef __ARM_FEATURE_UNALIGNED

/* What the loop over rows reads and keeps. */
struct conv_few_dsp_walk {
	int32_t rows;
	int32_t words; /* of a row */
	int32_t skip;  /* from behind the words of a row to the next row */
};
TINYML_OFFSET(struct conv_few_dsp_walk, rows, 0);
TINYML_OFFSET(struct conv_few_dsp_walk, words, 4);
TINYML_OFFSET(struct conv_few_dsp_walk, skip, 8);

/* Add the products of a filter and four windows, `step` bytes apart, to four sums. Compilers do not
 * find enough registers for it.
 */
TINYML_ASSEMBLY static void conv_few_dsp_rows(const int8_t *x TINYML_UNSEEN,
					      const int8_t *weights TINYML_UNSEEN,
					      int32_t step TINYML_UNSEEN,
					      struct conv_few_dsp_walk *walk TINYML_UNSEEN,
					      int32_t sums[WINDOWS] TINYML_UNSEEN)
{
	/* clang-format off */
#define WINDOW(place, sum)                                                                         \
	"ldr r11, [r0" place "\n\t"                                                                \
	"sxtb16 r12, r11\n\t"                                                                      \
	"sxtb16 r11, r11, ror #8\n\t"                                                              \
	"smlad " sum ", r12, r10, " sum "\n\t"                                                     \
	"smlad " sum ", r11, r9, " sum "\n\t"
#define STEP                                                                                       \
	"ldr r9, [r1], #4\n\t"                                                                     \
	"sxtb16 r10, r9\n\t"                                                                       \
	"sxtb16 r9, r9, ror #8\n\t"                                                                \
	WINDOW(", r2]", "r6")                                                                      \
	WINDOW(", r3]", "r7")                                                                      \
	WINDOW(", r4]", "r8")                                                                      \
	WINDOW("], #4", "r5")
	__asm__ volatile(
		"push {r3-r11, lr}\n\t"
		"ldr r4, [sp, #40]\n\t"
		"ldm r4, {r5-r8}\n\t"
		"lsl r3, r2, #1\n\t"
		"add r4, r3, r2\n"
		"1:\n\t" /* a row: an odd word, then two at a time */
		"ldr r9, [sp]\n\t"
		"ldr lr, [r9, #4]\n\t"
		"lsrs lr, lr, #1\n\t"
		"bcc 2f\n\t"
		STEP
		"cmp lr, #0\n\t"
		"beq 3f\n"
		"2:\n\t"
		STEP
		STEP
		"subs lr, #1\n\t"
		"bne 2b\n"
		"3:\n\t"
		"ldr r9, [sp]\n\t"
		"ldr r10, [r9, #8]\n\t"
		"ldr r11, [r9]\n\t"
		"add r0, r10\n\t"
		"subs r11, #1\n\t"
		"str r11, [r9]\n\t"
		"bne 1b\n\t"
		"ldr r4, [sp, #40]\n\t"
		"stm r4, {r5-r8}\n\t"
		"pop {r3-r11, pc}\n\t");
	/* clang-format on */
#undef WINDOW
#undef STEP
}

static void conv_few_dot(const struct conv_few_windows *x, const int8_t *weights, int32_t rows,
			 int32_t row, int32_t sums[WINDOWS])
{
	struct conv_few_dsp_walk walk = {rows, ROW(row) / 4, x->line - ROW(row)};

	conv_few_dsp_rows(x->first, weights, x->step, &walk, sums);
}

#else

static void conv_few_dot(const struct conv_few_windows *x, const int8_t *weights, int32_t rows,
			 int32_t row, int32_t sums[WINDOWS])
{
	for (int32_t i = 0; i < rows; i++) {
		for (int32_t j = 0; j < row; j++) {
			for (int32_t n = 0; n < WINDOWS; n++) {
				sums[n] += weights[i * ROW(row) + j] *
					   x->first[n * x->step + i * x->line + j];
			}
		}
	}
}

#endif

#include "conv_few_s8.h"

void tinyml_conv_few_dsp_s8(const struct tinyml_conv_few_s8 *p, const int8_t *x, int8_t *y,
			    void *scratch)
{
	conv_few_convolve(p, x, y, p->window.out_c, scratch);
}

#endif /* TINYML_CORE_DSP */
