/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions like those of conv_pairs_s8.c for filters with some weights of -128 beside negative
 * ones, which do not fit into an int16 together: they are stored as -127, and the inputs that they
 * meet are subtracted from the sums once more. */

#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include "../weighted/dsp_s8.h"

#define CONV_PAIRS_DOT         "tinyml_conv_pairs_corrected_dot"
#define CONV_PAIRS_DOT_TWO     conv_pairs_corrected_dot_two
#define CONV_PAIRS_FOURS_ONCE  conv_pairs_corrected_fours_once
#define CONV_PAIRS_FOURS_TWICE conv_pairs_corrected_fours_twice
#define CONV_PAIRS_FOURS       static
#include "conv_pairs_dsp_s8.h"

/* tinyml_conv_pairs_dot(), then the corrections. Each is a word: bytes from the input of the first
 * window to the end of the columns, plus one if it is for the second pair (sums in r8 and r9).
 * Assembly only. */
void tinyml_conv_pairs_corrected_dot(void);

__attribute__((naked, noinline, used)) void tinyml_conv_pairs_corrected_dot(void)
{
	/* clang-format off */
	__asm__ volatile(
		"push {lr}\n\t"
		"bl tinyml_conv_pairs_dot\n\t"
		"1:\n\t"
		"ldr r3, [r0], #4\n\t"
		"cbz r3, 2f\n\t"
		"lsrs r3, r3, #1\n\t"
		"sub r12, r2, r3, lsl #1\n\t"
		"ldrsh r3, [r12]\n\t"
		"ldrsh r12, [r12, #4]\n\t"
		"ittee cc\n\t"
		"subcc r4, r4, r3\n\t"
		"subcc r5, r5, r12\n\t"
		"subcs r8, r8, r3\n\t"
		"subcs r9, r9, r12\n\t"
		"b 1b\n\t"
		"2:\n\t"
		"pop {pc}\n\t");
	/* clang-format on */
}

static const uint32_t *conv_pairs_corrected_dot_two(const uint32_t *filters,
						    const uint32_t *columns, const uint32_t *end,
						    int32_t *sums)
{
	const uint32_t *w = tinyml_conv_pairs_dot_two(filters, columns, end, sums);

	for (; *w != 0; w++) {
		const int16_t *x = (const int16_t *)end - *w / 2;

		sums[0] -= x[0];
		sums[1] -= x[2];
	}
	return w + 1;
}

#include "conv_pairs_s8.h"

/* Corrections have no size of their own: there is one group, whose end nobody asks for. */
static int32_t conv_stream_group_words(const struct group *g)
{
	(void)g;
	return 0;
}

#include "conv_two_windows_s8.h"

void tinyml_conv_pairs_corrected_s8(const struct tinyml_conv_stream_s8 *p, const int8_t *x,
				    int8_t *y, void *scratch)
{
	TINYML_ASSERT(p->groups == 1);
	conv_stream_convolve(p, x, y, scratch);
}

#endif /* TINYML_CORE_DSP */
