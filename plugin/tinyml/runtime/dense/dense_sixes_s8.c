/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Large dense layers with DSP instructions and two filters in one int16 (pairs_s8.h): a word of the
 * input is unpacked once for six filters, as many as registers can hold the sums of. 23
 * instructions for 24 products. The last filters, two to eight, are left to the kernel for fours.
 */

#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include <tinyml/dense.h>

#include "../weighted/dsp_s8.h"
#include "../weighted/pairs_s8.h"

#define FILTERS 6

/* What is the same for all filters. Assembly knows the order of the members. */
struct sixes {
	const int8_t *x;
	const int8_t *end; /* of x */
	int32_t skipped;   /* bytes of code in the first round of the loop */
	int8_t *y;
	int32_t twice_zero;
	const int8_t *y_end;
	int32_t round_once;
};
TINYML_OFFSET(struct sixes, x, 0);
TINYML_OFFSET(struct sixes, end, 4);
TINYML_OFFSET(struct sixes, skipped, 8);
TINYML_OFFSET(struct sixes, y, 12);
TINYML_OFFSET(struct sixes, twice_zero, 16);
TINYML_OFFSET(struct sixes, y_end, 20);
TINYML_OFFSET(struct sixes, round_once, 24);

#ifdef __ARM_FEATURE_UNALIGNED

/* The code of a word is CODE_OF_A_WORD bytes long, so that the loop over WORDS_PER_ROUND words can
 * be entered in between. */
#define CODE_OF_A_WORD  92
#define WORDS_PER_ROUND 4

/* The outputs of all sixes; returns what follows them in the stream.
 *
 * r0 stream, r1 x, r2 its end, r4 to r9 sums; r3 odd elements, r10 even ones, r11, r12 and lr
 * weights. For outputs r1 exponents, r2, r3 and r12 factors, r10 y, r11 twice_zero, lr the
 * structure. */
TINYML_ASSEMBLY static const uint32_t *dense_sixes_multiply(const uint32_t *filters TINYML_UNSEEN,
							    struct sixes *sixes TINYML_UNSEEN)
{
	/* clang-format off */
#define PRODUCTS(x)                                                                                \
	"ldmia.w r0!, {r11, r12, lr}\n\t"                                                          \
	"smlad r4, r11, " x ", r4\n\t"                                                             \
	"sxtb16 r11, r11\n\t"                                                                      \
	"smlad r6, r12, " x ", r6\n\t"                                                             \
	"sxtb16 r12, r12\n\t"                                                                      \
	"smlad r8, lr, " x ", r8\n\t"                                                              \
	"sxtb16 lr, lr\n\t"                                                                        \
	"smlad r5, r11, " x ", r5\n\t"                                                             \
	"smlad r7, r12, " x ", r7\n\t"                                                             \
	"smlad r9, lr, " x ", r9\n\t"
#define WORD                                                                                       \
	"ldr.w r3, [r1], #4\n\t"                                                                   \
	"sxtb16 r10, r3\n\t"                                                                       \
	"sxtb16 r3, r3, ror #8\n\t"                                                                \
	PRODUCTS("r10")                                                                            \
	PRODUCTS("r3")
#define FINISH(sum)                                                                                \
	"asr " sum ", " sum ", r1\n\t"                                                             \
	"add " sum ", " sum ", r11\n\t"                                                            \
	"ssat " sum ", #8, " sum ", asr #1\n\t"                                                    \
	"strb " sum ", [r10], #1\n\t"
#define ONCE(sum, factor)                                                                          \
	"smmla " sum ", " sum ", " factor ", " sum "\n\t"                                          \
	FINISH(sum)
#define TWICE(sum, factor)                                                                         \
	"smmlar " sum ", " sum ", " factor ", " sum "\n\t"                                         \
	"add " sum ", " sum ", " sum ", asr #31\n\t" /* negative halves */                         \
	FINISH(sum)
#define NEXT "lsr r1, r1, #8\n\t"
#define OUTPUTS(round)                                                                             \
	"ldmia r0!, {r1-r3, r12}\n\t"                                                              \
	round("r4", "r2")                                                                          \
	NEXT                                                                                       \
	round("r5", "r3")                                                                          \
	NEXT                                                                                       \
	round("r6", "r12")                                                                         \
	"ldmia r0!, {r1-r3, r12}\n\t"                                                              \
	round("r7", "r2")                                                                          \
	NEXT                                                                                       \
	round("r8", "r3")                                                                          \
	NEXT                                                                                       \
	round("r9", "r12")
	__asm__ volatile(
		"push {r1, r4-r11, lr}\n\t"
		"mov lr, r1\n\t"
		"1:\n\t"
		"ldmia r0!, {r4-r9}\n\t" /* biases */
		"ldmia.w lr, {r1, r2, r12}\n\t"
		"add r4, r5, r4, lsl #8\n\t"
		"add r6, r7, r6, lsl #8\n\t"
		"add r8, r9, r8, lsl #8\n\t"
		"5:\n\t"
		"add pc, r12\n\t" /* from 4 bytes after this instruction */
		"nop\n\t"
		"2:\n\t"
		TINYML_CODE_BYTES("5b", "2b", 4)
		WORD
		WORD
		WORD
		WORD
		"6:\n\t"
		TINYML_CODE_BYTES("2b", "6b", WORDS_PER_ROUND * CODE_OF_A_WORD)
		"cmp r1, r2\n\t"
		"bne 2b\n\t"
		"ldr lr, [sp]\n\t"
		"sub r4, r4, r5\n\t"
		"sub r6, r6, r7\n\t"
		"sub r8, r8, r9\n\t"
		"asr r4, r4, #8\n\t"
		"asr r6, r6, #8\n\t"
		"asr r8, r8, #8\n\t"
		"ldr r1, [lr, #24]\n\t"
		"ldrd r10, r11, [lr, #12]\n\t"
		"cmp r1, #0\n\t"
		"bne 3f\n\t"
		OUTPUTS(TWICE)
		"b 4f\n\t"
		"3:\n\t"
		OUTPUTS(ONCE)
		"4:\n\t"
		"ldr r1, [lr, #20]\n\t"
		"str r10, [lr, #12]\n\t"
		"cmp r10, r1\n\t"
		"bne 1b\n\t"
		"pop {r1, r4-r11, pc}\n\t");
	/* clang-format on */
#undef OUTPUTS
#undef NEXT
#undef TWICE
#undef ONCE
#undef FINISH
#undef WORD
#undef PRODUCTS
}

#else /* the input may begin anywhere, and loads may trap */

#define CODE_OF_A_WORD  0
#define WORDS_PER_ROUND 4

static const uint32_t *dense_sixes_multiply(const uint32_t *filters, const struct sixes *p)
{
	for (int8_t *y = p->y; y != p->y_end; y += FILTERS) {
		const int32_t *bias = (const int32_t *)filters;
		int32_t a[FILTERS / 2], q[FILTERS / 2];

		for (int32_t i = 0; i < FILTERS / 2; i++) {
			a[i] = tinyml_pair_begin(bias[2 * i], bias[2 * i + 1]);
			q[i] = bias[2 * i + 1];
		}
		filters += FILTERS;
		for (const int8_t *x = p->x; x != p->end; x += 4) {
			const uint32_t word = tinyml_load_word(x);
			const int16x2_t even = tinyml_even_bytes(word),
					odd = tinyml_odd_bytes(word);

			for (int32_t i = 0; i < FILTERS; i++, filters++) {
				const int16x2_t two = i < FILTERS / 2 ? even : odd;
				const int32_t pair = i % (FILTERS / 2);

				a[pair] = __smlad((int16x2_t)*filters, two, a[pair]);
				q[pair] = __smlad(tinyml_even_bytes(*filters), two, q[pair]);
			}
		}
		for (int32_t i = 0; i < FILTERS; i++) {
			const uint32_t *three = &filters[i < 3 ? 0 : 4]; /* exponents, factors */
			const int32_t sum =
				i % 2 == 0 ? tinyml_pair_first(a[i / 2], q[i / 2]) : q[i / 2];

			y[i] = (int8_t)tinyml_output_dsp(sum, (int32_t)three[1 + i % 3],
							 (int32_t)(three[0] >> 8 * (i % 3) & 255u),
							 p->round_once, p->twice_zero);
		}
		filters += 8;
	}
	return filters;
}

#endif

void tinyml_dense_sixes_s8(const struct tinyml_dense_stream_s8 *p, const int8_t *x, int8_t *y)
{
	const struct tinyml_output to =
		tinyml_output(p->round_once, p->out_zero, p->out_min, p->out_max);
	struct tinyml_dense_stream_s8 last = *p;
	struct sixes sixes = {
		.x = x,
		.end = x + p->inputs,
		.skipped = (-(p->inputs / 4) & (WORDS_PER_ROUND - 1)) * CODE_OF_A_WORD,
		.y = y,
		.twice_zero = to.twice_zero,
		.round_once = p->round_once,
	};

	TINYML_ASSERT(p->rows == 1 && p->inputs > 0 && p->inputs % 4 == 0 && p->outputs > 8);
	last.outputs = p->outputs % FILTERS;
	last.outputs += last.outputs == 1 || last.outputs == 2 ? FILTERS : 0;
	sixes.y_end = y + p->outputs - last.outputs;
	last.filters = (const int32_t *)dense_sixes_multiply((const uint32_t *)p->filters, &sixes);
	for (int8_t *at = y; to.narrow && at != sixes.y_end; at++) {
		*at = (int8_t)tinyml_clamp(*at, to.low, to.high);
	}
	if (last.outputs > 0) {
		tinyml_dense_pairs_s8(&last, x, y + p->outputs - last.outputs);
	}
}

#endif /* TINYML_CORE_DSP */
