/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * All filters of a stream of pairs (pairs_s8.h) applied to two windows: fours in assembly, the last
 * ones, or all that have limits, in C.
 *
 * The file that includes this defines
 *
 *   CONV_PAIRS_DOT          the name of its tinyml_conv_pairs_dot(), as a string
 *   CONV_PAIRS_DOT_TWO      its tinyml_conv_pairs_dot_two()
 *   CONV_PAIRS_FOURS_ONCE   the names that its loops over fours get here
 *   CONV_PAIRS_FOURS_TWICE
 *   CONV_PAIRS_FOURS        `static`, or nothing if other files call these loops
 */

#ifndef TINYML_CONV_PAIRS_S8_H_
#define TINYML_CONV_PAIRS_S8_H_

#include "conv_both_s8.h"
#include "conv_pairs_dsp_s8.h"

TINYML_OFFSET(struct tinyml_conv_pairs_outputs, first, 0);
TINYML_OFFSET(struct tinyml_conv_pairs_outputs, second, 4);
TINYML_OFFSET(struct tinyml_conv_pairs_outputs, twice_zero, 8);
TINYML_OFFSET(struct tinyml_conv_pairs_outputs, fours, 12);

/* Outputs of both windows, four by four; returns what follows the filters. Exponents are read from
 * the lowest byte of a word that is shifted. The second window is written first. */
/* clang-format off */
#define OUTPUTS(round, sign, a, b)                                                                 \
	"ldr lr, [r0], #4\n\t"                                                                     \
	"smmla" round " " a ", " a ", lr, " a "\n\t"                                               \
	"smmla" round " " b ", " b ", lr, " b "\n\t"                                               \
	sign(a)                                                                                    \
	sign(b)                                                                                    \
	"asr " a ", " a ", r3\n\t"                                                                 \
	"asr " b ", " b ", r3\n\t"                                                                 \
	"add " a ", " a ", r12\n\t"                                                                \
	"add " b ", " b ", r12\n\t"                                                                \
	"ssat " a ", #8, " a ", asr #1\n\t"                                                        \
	"ssat " b ", #8, " b ", asr #1\n\t"                                                        \
	"strb " b ", [r2], #1\n\t"                                                                 \
	"strb " a ", [r1], #1\n\t"
#define NEXT         "lsr r3, r3, #8\n\t"
#define AS_IT_IS(a)  ""
#define FROM_ZERO(a) "add " a ", " a ", " a ", asr #31\n\t" /* negative halves */
#define FOURS(name, round, sign)                                                                   \
	TINYML_ASSEMBLY CONV_PAIRS_FOURS const uint32_t *name(                                      \
		const uint32_t *filters TINYML_UNSEEN, const uint32_t *columns TINYML_UNSEEN,      \
		const uint32_t *end TINYML_UNSEEN, struct tinyml_conv_pairs_outputs *to TINYML_UNSEEN)               \
	{                                                                                          \
		__asm__ volatile(                                                                  \
			"push {r1-r11, lr}\n\t"                                                    \
			"1:\n\t"                                                                   \
			"bl " CONV_PAIRS_DOT "\n\t"                                             \
			"ldr r3, [sp, #8]\n\t"                                                     \
			"ldm r3, {r1, r2, r12}\n\t"                                                \
			"ldr r3, [r0, #16]\n\t"                                                    \
			OUTPUTS(round, sign, "r4", "r5")                                           \
			NEXT                                                                       \
			OUTPUTS(round, sign, "r6", "r7")                                           \
			NEXT                                                                       \
			OUTPUTS(round, sign, "r8", "r9")                                           \
			NEXT                                                                       \
			OUTPUTS(round, sign, "r10", "r11")                                         \
			"ldr r3, [sp, #8]\n\t"                                                     \
			"ldr r12, [r3, #12]\n\t"                                                   \
			"adds r0, #4\n\t"                                                          \
			"subs r12, #1\n\t"                                                         \
			"stm r3, {r1, r2}\n\t"                                                     \
			"str r12, [r3, #12]\n\t"                                                   \
			"ldrd r1, r2, [sp]\n\t"                                                    \
			"bne 1b\n\t"                                                               \
			"pop {r1-r11, pc}\n\t");                                                   \
	}
/* clang-format on */
FOURS(CONV_PAIRS_FOURS_ONCE, "", AS_IT_IS)
FOURS(CONV_PAIRS_FOURS_TWICE, "r", FROM_ZERO)
#undef FOURS
#undef FROM_ZERO
#undef AS_IT_IS
#undef NEXT
#undef OUTPUTS

/* The sums of four filters, filter by filter; returns what follows the weights. */
TINYML_ASSEMBLY static const uint32_t *conv_pairs_dot_four(const uint32_t *filters TINYML_UNSEEN,
							   const uint32_t *columns TINYML_UNSEEN,
							   const uint32_t *end TINYML_UNSEEN,
							   int32_t *sums TINYML_UNSEEN)
{
	/* clang-format off */
	__asm__ volatile(
		"push {r3-r11, lr}\n\t"
		"bl " CONV_PAIRS_DOT "\n\t"
		"pop {r3}\n\t"
		"stmia r3, {r4-r11}\n\t"
		"pop {r4-r11, pc}\n\t");
	/* clang-format on */
}

/* Outputs of some filters at both windows: the second first, for it may be the same place. */
static void conv_pairs_write_outputs(const int32_t *sums, const int32_t *factor,
				     const int8_t *exponent, int32_t count,
				     const struct tinyml_output *to, int8_t *y, int32_t second)
{
	const bool once = to->sign == 0;

	for (; count > 0; count--, sums += 2, factor++, exponent++, y++) {
		int32_t s0, s1;

		if (once) {
			s0 = tinyml_output_dsp(sums[0], *factor, *exponent, true, to->twice_zero);
			s1 = tinyml_output_dsp(sums[1], *factor, *exponent, true, to->twice_zero);
		} else {
			s0 = tinyml_output_dsp(sums[0], *factor, *exponent, false, to->twice_zero);
			s1 = tinyml_output_dsp(sums[1], *factor, *exponent, false, to->twice_zero);
		}
		y[second] = (int8_t)tinyml_clamp(s1, to->low, to->high);
		y[0] = (int8_t)tinyml_clamp(s0, to->low, to->high);
	}
}

/* All filters of a group at `count` positions, whose outputs are `step` bytes apart. */
static void conv_stream_apply_filters(const struct tinyml_conv_stream_s8 *p, const struct group *g,
				      const uint32_t *columns, int8_t *y, int32_t count,
				      int32_t step)
{
	const struct tinyml_output to =
		tinyml_output(p->round_once, p->out_zero, p->out_min, p->out_max);
	const int32_t second = count > 1 ? step : 0;
	const uint32_t *w = g->filters, *end = &columns[g->column];
	struct tinyml_conv_pairs_outputs outputs = {
		.first = y,
		.second = y + second,
		.twice_zero = to.twice_zero,
		.fours = to.narrow ? 0 : g->out_c / 4,
	};
	int32_t left = g->out_c - 4 * outputs.fours;

	if (outputs.fours > 0) {
		w = p->round_once ? CONV_PAIRS_FOURS_ONCE(w, columns, end, &outputs)
				  : CONV_PAIRS_FOURS_TWICE(w, columns, end, &outputs);
		y = outputs.first;
	}
	while (left > 0) {
		const int32_t size = left > 2 ? 4 : 2, some = left < size ? left : size;
		int32_t sums[8];

		w = left > 2 ? conv_pairs_dot_four(w, columns, end, sums)
			     : CONV_PAIRS_DOT_TWO(w, columns, end, sums);
		conv_pairs_write_outputs(sums, (const int32_t *)w, (const int8_t *)&w[size], some,
					 &to, y, second);
		w += size + 1;
		y += some;
		left -= some;
	}
}

#endif /* TINYML_CONV_PAIRS_S8_H_ */
