/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions with weights of four bits and DSP instructions: two windows meet four filters at a
 * time. An int16 h has an element of four filters, two of them fill a word. SMLAD adds up x * h and
 * x times its 12, 8 and 4 lower bits, for which an instruction each masks a word for both windows;
 * differences of these sums are those of the filters. 25 instructions for 32 products.
 *
 * Sums may wrap around on the way; those of the second, third and fourth filter must be within 28,
 * 24 and 20 bits in the end. The compiler proves that for every layer that uses this kernel. */

#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include "../weighted/dsp_s8.h"

#include "conv_both_s8.h"

static int32_t conv_stream_group_words(const struct group *g)
{
	return (g->out_c + 3) / 4 * (g->column / 2 + 9);
}

/* Where outputs go, and how they are made. Assembly knows the layout. */
struct outputs {
	int8_t *first;  /* of the first window */
	int8_t *second; /* of the second, or the same place */
	int32_t twice_zero;
	int32_t fours;             /* filters still to come, in fours */
	int32_t begin[WINDOWS][4]; /* what zero points add to the sums of four filters */
	int32_t sums[4][WINDOWS];
	int32_t once; /* one rounding */
};
TINYML_OFFSET(struct outputs, first, 0);
TINYML_OFFSET(struct outputs, second, 4);
TINYML_OFFSET(struct outputs, twice_zero, 8);
TINYML_OFFSET(struct outputs, fours, 12);
TINYML_OFFSET(struct outputs, begin, 16);
TINYML_OFFSET(struct outputs, sums, 48);

/* The sums of four filters at two windows in r4 to r11, filter by filter. Takes filters (r0),
 * columns (r1), the end of the columns (r2) and struct outputs (r3); r0 is what follows the
 * weights. Assembly only.
 *
 * Four elements of the columns are 16 bytes, and their code is CODE_OF_FOUR bytes long, so that the
 * loop over 16 elements can be entered in between. */
#define CODE_OF_FOUR 100
void tinyml_conv_nibbles_dot(void);

__attribute__((naked, noinline, used)) void tinyml_conv_nibbles_dot(void)
{
	/* clang-format off */
#define BOTH(w, a, b)                                                                              \
	"smlad " a ", " w ", r12, " a "\n\t"                                                       \
	"smlad " b ", " w ", lr, " b "\n\t"
#define TWO(w)                                                                                     \
	"ldrd r12, lr, [r1], #8\n\t"                                                               \
	BOTH(w, "r10", "r11")                                                                      \
	"bic " w ", " w ", #0xf000f000\n\t"                                                        \
	BOTH(w, "r8", "r9")                                                                        \
	"uxtb16 " w ", " w "\n\t"                                                                  \
	BOTH(w, "r6", "r7")                                                                        \
	"and " w ", " w ", #0x000f000f\n\t"                                                        \
	BOTH(w, "r4", "r5")
#define FOUR                                                                                       \
	"ldrd r2, r3, [r0], #8\n\t"                                                                \
	TWO("r2")                                                                                  \
	TWO("r3")
	__asm__ volatile(
		"push {r2, lr}\n\t"
		"add r12, r3, #32\n\t"
		"ldmia r0!, {r4, r6, r8, r10}\n\t" /* sums of biases */
		"ldm r12, {r5, r7, r9, r11}\n\t"
		"add r12, r3, #16\n\t"
		"ldm r12, {r2, r3, r12, lr}\n\t"
		"add r5, r5, r4\n\t"
		"add r7, r7, r6\n\t"
		"add r9, r9, r8\n\t"
		"add r11, r11, r10\n\t"
		"add r4, r4, r2\n\t"
		"ldr r2, [sp]\n\t"
		"add r6, r6, r3\n\t"
		"add r8, r8, r12\n\t"
		"sub r12, r1, r2\n\t" /* less than 16 elements first: skip the others */
		"ubfx r12, r12, #4, #2\n\t"
		"mov r2, #100\n\t" /* CODE_OF_FOUR */
		"add r10, r10, lr\n\t"
		"mul r12, r12, r2\n\t"
		"2:\n\t"
		"add pc, r12\n\t" /* from 4 bytes after this instruction */
		"nop\n\t"
		"1:\n\t"
		TINYML_CODE_BYTES("2b", "1b", 4)
		FOUR
		FOUR
		FOUR
		FOUR
		"3:\n\t"
		TINYML_CODE_BYTES("1b", "3b", 4 * CODE_OF_FOUR)
		"ldr r12, [sp]\n\t"
		"cmp r1, r12\n\t"
		"bne.w 1b\n\t"
		"sub r10, r10, r8\n\t"
		"sub r8, r8, r6\n\t"
		"sub r6, r6, r4\n\t"
		"sub r11, r11, r9\n\t"
		"sub r9, r9, r7\n\t"
		"sub r7, r7, r5\n\t"
		"asr r10, r10, #12\n\t"
		"asr r8, r8, #8\n\t"
		"asr r6, r6, #4\n\t"
		"asr r11, r11, #12\n\t"
		"asr r9, r9, #8\n\t"
		"asr r7, r7, #4\n\t"
		"pop {r2, pc}\n\t");
	/* clang-format on */
#undef FOUR
#undef TWO
#undef BOTH
}

/* Outputs of some of four filters at both windows, the second first, for it may be the same place.
 * Exponents may be below zero: an output that is not smaller than half the sum. */
static void conv_nibbles_dsp_write_outputs(const struct outputs *p, const uint32_t *w,
					   int32_t count, const struct tinyml_output *to)
{
	const int8_t *exponent = (const int8_t *)&w[4];

	for (int32_t i = 0; i < count; i++) {
		const int32_t multiplier = (int32_t)(w[i] >> 1), shift = ~exponent[i];

		p->second[i] = tinyml_output_s8(p->sums[i][1], multiplier, shift, to);
		p->first[i] = tinyml_output_s8(p->sums[i][0], multiplier, shift, to);
	}
}

/* The same for assembly: whole fours without other limits than those of int8. */
__attribute__((noinline, used)) void tinyml_conv_nibbles_outputs(struct outputs *p,
								 const uint32_t *w);

void tinyml_conv_nibbles_outputs(struct outputs *p, const uint32_t *w)
{
	const struct tinyml_output to =
		tinyml_output(p->once != 0, p->twice_zero >> 1, INT8_MIN, INT8_MAX);

	conv_nibbles_dsp_write_outputs(p, w, 4, &to);
	p->first += 4;
	p->second += 4;
}

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
	TINYML_ASSEMBLY static const uint32_t *name(                                               \
		const uint32_t *filters TINYML_UNSEEN, const uint32_t *columns TINYML_UNSEEN,      \
		const uint32_t *end TINYML_UNSEEN, struct outputs *to TINYML_UNSEEN)               \
	{                                                                                          \
		__asm__ volatile(                                                                  \
			"push {r1-r11, lr}\n\t"                                                    \
			"1:\n\t"                                                                   \
			"bl tinyml_conv_nibbles_dot\n\t"                                           \
			"ldr lr, [sp, #8]\n\t"                                                     \
			"ldr r3, [r0, #16]\n\t"                                                    \
			"tst r3, #0x80808080\n\t"                                                  \
			"bne 3f\n\t"                                                               \
			"ldm lr, {r1, r2, r12}\n\t"                                                \
			OUTPUTS(round, sign, "r4", "r5")                                           \
			NEXT                                                                       \
			OUTPUTS(round, sign, "r6", "r7")                                           \
			NEXT                                                                       \
			OUTPUTS(round, sign, "r8", "r9")                                           \
			NEXT                                                                       \
			OUTPUTS(round, sign, "r10", "r11")                                         \
			"adds r0, #4\n\t"                                                          \
			"ldr r3, [sp, #8]\n\t"                                                     \
			"stm r3, {r1, r2}\n\t"                                                     \
			"2:\n\t"                                                                   \
			"ldr r12, [r3, #12]\n\t"                                                   \
			"subs r12, #1\n\t"                                                         \
			"str r12, [r3, #12]\n\t"                                                   \
			"ldrd r1, r2, [sp]\n\t"                                                    \
			"bne 1b\n\t"                                                               \
			"pop {r1-r11, pc}\n\t"                                                     \
			"3:\n\t" /* an exponent below zero */                                      \
			"add r12, lr, #48\n\t"                                                     \
			"stm r12, {r4-r11}\n\t"                                                    \
			"mov r4, r0\n\t"                                                           \
			"mov r1, r0\n\t"                                                           \
			"mov r0, lr\n\t"                                                           \
			"bl tinyml_conv_nibbles_outputs\n\t"                                       \
			"add r0, r4, #20\n\t"                                                      \
			"ldr r3, [sp, #8]\n\t"                                                     \
			"b 2b\n\t");                                                               \
	}
/* clang-format on */
FOURS(conv_nibbles_dsp_fours_once, "", AS_IT_IS)
FOURS(conv_nibbles_dsp_fours_twice, "r", FROM_ZERO)
#undef FOURS
#undef FROM_ZERO
#undef AS_IT_IS
#undef NEXT
#undef OUTPUTS

/* The sums of four filters; returns what follows the weights. */
TINYML_ASSEMBLY static const uint32_t *
conv_nibbles_dsp_dot_four(const uint32_t *filters TINYML_UNSEEN,
			  const uint32_t *columns TINYML_UNSEEN, const uint32_t *end TINYML_UNSEEN,
			  struct outputs *to TINYML_UNSEEN)
{
	/* clang-format off */
	__asm__ volatile(
		"push {r3-r11, lr}\n\t"
		"bl tinyml_conv_nibbles_dot\n\t"
		"pop {r3}\n\t"
		"adds r3, #48\n\t"
		"stm r3, {r4-r11}\n\t"
		"pop {r4-r11, pc}\n\t");
	/* clang-format on */
}

/* Adds up the elements of both columns: blocks of four elements each, of which there are some. In
 * assembly, because compilers load two words at a time. */
static void conv_nibbles_dsp_sum_columns(const uint32_t *c, const uint32_t *last,
					 int32_t all[WINDOWS])
{
	int32_t first = 0, second = 0;

	/* clang-format off */
#define FOUR                                                                                       \
	"ldmia %[c]!, {r2-r5}\n\t"                                                                 \
	"smlad %[first], r2, %[ones], %[first]\n\t"                                                \
	"smlad %[second], r3, %[ones], %[second]\n\t"                                              \
	"smlad %[first], r4, %[ones], %[first]\n\t"                                                \
	"smlad %[second], r5, %[ones], %[second]\n\t"
	__asm__ volatile(
		"sub r2, %[last], %[c]\n\t"
		"lsls r2, r2, #27\n\t" /* odd number of blocks: enter in the middle */
		"bmi 2f\n\t"
		"1:\n\t"
		FOUR
		"2:\n\t"
		FOUR
		"cmp %[c], %[last]\n\t"
		"bne 1b\n\t"
		: [c] "+r"(c), [first] "+r"(first), [second] "+r"(second)
		: [last] "r"(last), [ones] "r"(0x00010001)
		: "r2", "r3", "r4", "r5", "cc", "memory");
	/* clang-format on */
#undef FOUR
	all[0] = first;
	all[1] = second;
}

/* What zero points add to the sums, for both windows: fields are larger than weights by
 * weight_zero, the fourth one by 8 less. What follows the last element of a window is not known. */
static void conv_nibbles_dsp_begin(const struct tinyml_conv_stream_s8 *p, const struct group *g,
				   const uint32_t *columns, struct outputs *to)
{
	const int32_t elements = p->window.kernel_h * p->window.kernel_w * g->in_c;
	const int32_t rest = elements % 4;
	const uint32_t *last = &columns[elements - rest];
	int32_t all[WINDOWS] = {0};

	if (columns != last) {
		conv_nibbles_dsp_sum_columns(columns, last, all);
	}
	for (int32_t i = 0; i < WINDOWS; i++) {
		if (rest > 0) {
			all[i] += (int16_t)last[i];
			all[i] += rest > 1 ? (int16_t)last[2 + i] : 0;
			all[i] += rest > 2 ? (int16_t)(last[i] >> 16) : 0;
		}
		const uint32_t sum = (uint32_t)all[i], zero = (uint32_t)p->weight_zero * sum;

		to->begin[i][0] = (int32_t)(0u - zero);
		to->begin[i][1] = (int32_t)(0u - 17u * zero);
		to->begin[i][2] = (int32_t)(0u - 273u * zero);
		to->begin[i][3] = (int32_t)(32768u * sum - 4369u * zero);
	}
}

/* All filters of a group at `count` positions, whose outputs are `step` bytes apart. */
static void conv_stream_apply_filters(const struct tinyml_conv_stream_s8 *p, const struct group *g,
				      const uint32_t *columns, int8_t *y, int32_t count,
				      int32_t step)
{
	const struct tinyml_output to =
		tinyml_output(p->round_once, p->out_zero, p->out_min, p->out_max);
	const uint32_t *w = g->filters, *end = &columns[g->column];
	struct outputs outputs = {
		.first = y,
		.second = y + (count > 1 ? step : 0),
		.twice_zero = to.twice_zero,
		.fours = to.narrow ? 0 : g->out_c / 4,
		.once = p->round_once,
	};
	int32_t left = g->out_c - 4 * outputs.fours;

	conv_nibbles_dsp_begin(p, g, columns, &outputs);
	if (outputs.fours > 0) {
		w = p->round_once ? conv_nibbles_dsp_fours_once(w, columns, end, &outputs)
				  : conv_nibbles_dsp_fours_twice(w, columns, end, &outputs);
	}
	for (; left > 0; left -= 4, w += 5, outputs.first += 4, outputs.second += 4) {
		w = conv_nibbles_dsp_dot_four(w, columns, end, &outputs);
		conv_nibbles_dsp_write_outputs(&outputs, w, left < 4 ? left : 4, &to);
	}
}

#include "conv_two_windows_s8.h"

void tinyml_conv_nibbles_dsp_s8(const struct tinyml_conv_stream_s8 *p, const int8_t *x, int8_t *y,
				void *scratch)
{
	conv_stream_convolve(p, x, y, scratch);
}

#endif /* TINYML_CORE_DSP */
