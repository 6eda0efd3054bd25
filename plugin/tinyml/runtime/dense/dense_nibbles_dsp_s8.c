/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Dense layers with weights of four bits and DSP instructions: a row meets eight filters at a
 * time. An int16 h has an element of four filters, two of them fill a word. SMLAD
 * adds up x * h and x times its 12, 8 and 4 lower bits, for which an instruction each masks a word;
 * differences of these sums are those of the filters. 31 instructions for 32 products: a row of up
 * to 128 elements is unpacked once, on the stack; longer ones are unpacked for every eight filters,
 * which takes two more.
 *
 * Sums may wrap around on the way; those of the second, third and fourth filter must be within 28,
 * 24 and 20 bits in the end. The compiler proves that for every layer that uses this kernel. */

#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include <tinyml/dense.h>

#include "../weighted/dsp_s8.h"

#define FILTERS 8
#define SHORT   128 /* elements of a row that is unpacked as a whole */

/* What is the same for all filters. Assembly knows the order of the members. */
struct eights {
	const void *x;      /* bytes, or int16 in the order in which they are multiplied */
	int32_t skipped;    /* bytes of code before the first round of the loop */
	const void *end;    /* of x, in whole words */
	uint32_t last_word; /* of bytes */
	int32_t rest;       /* elements in it */
	int32_t begin[4];   /* what zero points add to the sums of four filters */
	int8_t *y;
	int32_t twice_zero;
	int32_t once; /* 1: one rounding; -1: two, and nothing below the zero point is kept */
	const int8_t *y_end;
};
TINYML_OFFSET(struct eights, x, 0);
TINYML_OFFSET(struct eights, skipped, 4);
TINYML_OFFSET(struct eights, end, 8);
TINYML_OFFSET(struct eights, last_word, 12);
TINYML_OFFSET(struct eights, rest, 16);
TINYML_OFFSET(struct eights, begin, 20);
TINYML_OFFSET(struct eights, y, 36);
TINYML_OFFSET(struct eights, twice_zero, 40);
TINYML_OFFSET(struct eights, once, 44);
TINYML_OFFSET(struct eights, y_end, 48);

/* Outputs of four filters, of which some may have an exponent below zero: an output that is not
 * smaller than half the sum. */
__attribute__((noinline, used)) void tinyml_dense_nibbles_outputs(const int32_t *sums,
								  const int32_t *factor,
								  uint32_t exponents,
								  const struct eights *p);

void tinyml_dense_nibbles_outputs(const int32_t *sums, const int32_t *factor, uint32_t exponents,
				  const struct eights *p)
{
	const bool once = p->once > 0;
	const struct tinyml_output to = tinyml_output(once, p->twice_zero >> 1, INT8_MIN, INT8_MAX);

	for (int32_t i = 0; i < 4; i++, exponents >>= 8) {
		const int32_t sum = sums[i], exponent = (int8_t)exponents;

		if (exponent < 0) {
			p->y[i] = tinyml_output_s8(sum, (int32_t)((uint32_t)factor[i] >> 1),
						   ~exponent, &to);
		} else {
			p->y[i] = (int8_t)(once ? tinyml_output_dsp(sum, factor[i], exponent, true,
								    to.twice_zero)
						: tinyml_output_dsp(sum, factor[i], exponent, false,
								    to.twice_zero));
		}
	}
}

#ifdef __ARM_FEATURE_UNALIGNED

/* The code of a word has so many bytes, so that a loop over several words can be entered in
 * between: one over bytes, and BYTES_OF_CODE later one over int16. */
#define CODE_OF_BYTES   132
#define CODE_OF_HALVES  124
#define ROUND_OF_BYTES  6
#define ROUND_OF_HALVES 8
#define BYTES_OF_CODE   950

/* The outputs of all eights; returns what follows them in the stream.
 *
 * r0 stream, r1 x, r2 even elements, r3 odd ones, r4 to r11 sums; r12 and lr weights. For outputs
 * r1 y, r2 twice_zero, r3 exponents, r12 and lr or r4 to r7 factors. On the stack: where y is
 * in the structure, and its end. */
TINYML_ASSEMBLY static const uint32_t *
dense_nibbles_dsp_multiply(const uint32_t *filters TINYML_UNSEEN,
			   struct eights *eights TINYML_UNSEEN)
{
	/* clang-format off */
#define FOUR(w, x, a, b, c, d)                                                                     \
	"smlad " d ", " w ", " x ", " d "\n\t"                                                     \
	"bic " w ", " w ", #0xf000f000\n\t"                                                        \
	"smlad " c ", " w ", " x ", " c "\n\t"                                                     \
	"uxtb16 " w ", " w "\n\t"                                                                  \
	"smlad " b ", " w ", " x ", " b "\n\t"                                                     \
	"and " w ", " w ", #0x000f000f\n\t"                                                        \
	"smlad " a ", " w ", " x ", " a "\n\t"
#define EIGHT(x)                                                                                   \
	"ldrd r12, lr, [r0], #8\n\t"                                                               \
	FOUR("r12", x, "r4", "r5", "r6", "r7")                                                     \
	FOUR("lr", x, "r8", "r9", "r10", "r11")
#define PRODUCTS                                                                                   \
	"sxtb16 r2, r3\n\t"                                                                        \
	"sxtb16 r3, r3, ror #8\n\t"                                                                \
	EIGHT("r2")                                                                                \
	EIGHT("r3")
#define BYTES                                                                                      \
	"ldr.w r3, [r1], #4\n\t"                                                                   \
	PRODUCTS
#define HALVES                                                                                     \
	"ldrd r2, r3, [r1], #8\n\t"                                                                \
	EIGHT("r2")                                                                                \
	EIGHT("r3")
#define FINISH(sum)                                                                                \
	"asr " sum ", " sum ", r3\n\t"                                                             \
	"add " sum ", " sum ", r2\n\t"                                                             \
	"ssat " sum ", #8, " sum ", asr #1\n\t"                                                    \
	"strb " sum ", [r1], #1\n\t"
#define ONCE(sum, factor)                                                                          \
	"smmla " sum ", " sum ", " factor ", " sum "\n\t"                                          \
	FINISH(sum)
#define TWICE(sum, factor)                                                                         \
	"smmlar " sum ", " sum ", " factor ", " sum "\n\t"                                         \
	"add " sum ", " sum ", " sum ", asr #31\n\t" /* negative halves */                         \
	FINISH(sum)
/* Negative halves do not matter. */
#define RELU(sum, factor)                                                                          \
	"smmlar " sum ", " sum ", " factor ", " sum "\n\t"                                         \
	FINISH(sum)
#define NEXT "lsr r3, r3, #8\n\t"
#define FIRST(round)                                                                               \
	"ldmia r0!, {r12, lr}\n\t"                                                                 \
	round("r4", "r12")                                                                         \
	NEXT                                                                                       \
	round("r5", "lr")                                                                          \
	NEXT                                                                                       \
	"ldmia r0!, {r12, lr}\n\t"                                                                 \
	round("r6", "r12")                                                                         \
	NEXT                                                                                       \
	round("r7", "lr")
#define SECOND(round)                                                                              \
	"ldmia r0!, {r3-r7}\n\t"                                                                   \
	"tst r3, #0x80808080\n\t"                                                                  \
	"bne.w 9f\n\t"                                                                             \
	round("r8", "r4")                                                                          \
	NEXT                                                                                       \
	round("r9", "r5")                                                                          \
	NEXT                                                                                       \
	round("r10", "r6")                                                                         \
	NEXT                                                                                       \
	round("r11", "r7")
	__asm__ volatile(
		"ldr r2, [r1, #8]\n\t"
		"adds r1, #36\n\t"
		"push {r1, r2, r3, r4-r11, lr}\n\t"
		"mov lr, r1\n\t"
		"1:\n\t"
		"ldmia r0!, {r4-r11}\n\t" /* sums of biases */
		"ldmdb lr, {r1, r2, r3, r12}\n\t"
		"add r4, r4, r1\n\t"
		"add r5, r5, r2\n\t"
		"add r6, r6, r3\n\t"
		"add r7, r7, r12\n\t"
		"add r8, r8, r1\n\t"
		"add r9, r9, r2\n\t"
		"add r10, r10, r3\n\t"
		"add r11, r11, r12\n\t"
		"ldrd r1, r12, [lr, #-36]\n\t"
		"5:\n\t"
		"add pc, r12\n\t" /* from 4 bytes after this instruction */
		"nop\n\t"
		"2:\n\t"
		TINYML_CODE_BYTES("5b", "2b", 4)
		BYTES
		BYTES
		BYTES
		BYTES
		BYTES
		BYTES
		"3:\n\t"
		TINYML_CODE_BYTES("2b", "3b", ROUND_OF_BYTES * CODE_OF_BYTES)
		"ldr.w r12, [sp, #4]\n\t"
		"cmp r1, r12\n\t"
		"bne.w 2b\n\t"
		"ldr.w lr, [sp]\n\t"
		"ldrd r3, r12, [lr, #-24]\n\t"
		"cmp.w r12, #0\n\t"
		"beq.w 5f\n\t"
		PRODUCTS
		"b.w 6f\n\t"
		"3:\n\t"
		TINYML_CODE_BYTES("2b", "3b", BYTES_OF_CODE)
		HALVES
		HALVES
		HALVES
		HALVES
		HALVES
		HALVES
		HALVES
		HALVES
		"4:\n\t"
		TINYML_CODE_BYTES("3b", "4b", ROUND_OF_HALVES * CODE_OF_HALVES)
		"ldr r12, [sp, #4]\n\t"
		"cmp r1, r12\n\t"
		"bne.w 3b\n\t"
		"6:\n\t" /* lr is the last weights */
		"ldr lr, [sp]\n\t"
		"5:\n\t"
		"ldm lr, {r1, r2, r12}\n\t"
		"sub r7, r7, r6\n\t"
		"sub r6, r6, r5\n\t"
		"sub r5, r5, r4\n\t"
		"sub r11, r11, r10\n\t"
		"sub r10, r10, r9\n\t"
		"sub r9, r9, r8\n\t"
		"asr r7, r7, #12\n\t"
		"asr r6, r6, #8\n\t"
		"asr r5, r5, #4\n\t"
		"asr r11, r11, #12\n\t"
		"asr r10, r10, #8\n\t"
		"asr r9, r9, #4\n\t"
		"ldr r3, [r0], #4\n\t"
		"tst r3, #0x80808080\n\t"
		"bne.w 8f\n\t"
		"cmp r12, #0\n\t"
		"bmi.w 2f\n\t"
		"bne.w 6f\n\t"
		FIRST(TWICE)
		"4:\n\t"
		SECOND(TWICE)
		"7:\n\t"
		"ldr lr, [sp]\n\t"
		"ldr r2, [lr, #12]\n\t"
		"str r1, [lr]\n\t"
		"cmp r1, r2\n\t"
		"bne.w 1b\n\t"
		"pop {r1, r2, r3, r4-r11, pc}\n\t"
		"6:\n\t"
		FIRST(ONCE)
		"5:\n\t"
		SECOND(ONCE)
		"b 7b\n\t"
		"2:\n\t"
		FIRST(RELU)
		"6:\n\t"
		SECOND(RELU)
		"b 7b\n\t"
		"8:\n\t"
		"push {r4-r7}\n\t"
		"bl 3f\n\t"
		"ldr r12, [r12, #8]\n\t"
		"cmp r12, #0\n\t"
		"beq 4b\n\t"
		"bpl 5b\n\t"
		"b 6b\n\t"
		"9:\n\t"
		"subs r0, #16\n\t"
		"push {r8-r11}\n\t"
		"bl 3f\n\t"
		"b 7b\n\t"
		"3:\n\t" /* outputs by C: takes y, factors and exponents; drops the sums */
		"add r12, r0, #16\n\t"
		"push {r12, lr}\n\t"
		"mov r2, r3\n\t"
		"ldr r3, [sp, #24]\n\t"
		"str r1, [r3]\n\t"
		"subs r3, #36\n\t"
		"mov r1, r0\n\t"
		"add r0, sp, #8\n\t"
		"bl tinyml_dense_nibbles_outputs\n\t"
		"pop {r0, r3}\n\t"
		"add sp, #16\n\t"
		"ldr r12, [sp]\n\t"
		"ldrd r1, r2, [r12]\n\t"
		"adds r1, #4\n\t"
		"bx r3\n\t");
	/* clang-format on */
#undef SECOND
#undef FIRST
#undef NEXT
#undef RELU
#undef TWICE
#undef ONCE
#undef FINISH
#undef HALVES
#undef BYTES
#undef PRODUCTS
#undef EIGHT
#undef FOUR
}

#else /* the input may begin anywhere, and loads may trap */

#define CODE_OF_BYTES  0
#define ROUND_OF_BYTES 1

/* One word of the weights of four filters times two elements. */
static inline void dense_nibbles_dsp_add(int32_t sums[4], uint32_t w, int16x2_t x)
{
	sums[0] = __smlad((int16x2_t)(w & 0x000f000fu), x, sums[0]);
	sums[1] = __smlad((int16x2_t)(w & 0x00ff00ffu), x, sums[1]);
	sums[2] = __smlad((int16x2_t)(w & 0x0fff0fffu), x, sums[2]);
	sums[3] = __smlad((int16x2_t)w, x, sums[3]);
}

static const uint32_t *dense_nibbles_dsp_multiply(const uint32_t *filters, struct eights *p)
{
	for (; p->y != p->y_end; filters += 10) {
		int32_t sums[FILTERS];

		for (int32_t i = 0; i < FILTERS; i++) {
			sums[i] = (int32_t)(filters[i] + (uint32_t)p->begin[i % 4]);
		}
		filters += FILTERS;
		for (const int8_t *x = p->x; x != p->end || p->rest > 0; x += 4) {
			const bool last = x == p->end;
			const uint32_t word = last ? p->last_word : tinyml_load_word(x);

			dense_nibbles_dsp_add(&sums[0], filters[0], tinyml_even_bytes(word));
			dense_nibbles_dsp_add(&sums[4], filters[1], tinyml_even_bytes(word));
			dense_nibbles_dsp_add(&sums[0], filters[2], tinyml_odd_bytes(word));
			dense_nibbles_dsp_add(&sums[4], filters[3], tinyml_odd_bytes(word));
			filters += 4;
			if (last) {
				break;
			}
		}
		for (int32_t i = FILTERS - 1; i >= 0; i--) {
			const uint32_t less = i % 4 > 0 ? (uint32_t)sums[i - 1] : 0u;

			sums[i] = (int32_t)((uint32_t)sums[i] - less) >> 4 * (i % 4);
		}
		for (int32_t i = 0; i < FILTERS; i += 4, p->y += 4) {
			const uint32_t *four = &filters[i / 4 * 5];

			tinyml_dense_nibbles_outputs(&sums[i], (const int32_t *)&four[1], four[0],
						     p);
		}
	}
	return filters;
}

#endif

/* What zero points add: fields are larger than weights by weight_zero, the fourth one by 8 less. */
static void dense_nibbles_dsp_begin(struct eights *p, int32_t weight_zero, uint32_t all)
{
	const uint32_t zero = (uint32_t)weight_zero * all;

	p->begin[0] = (int32_t)(0u - zero);
	p->begin[1] = (int32_t)(0u - 17u * zero);
	p->begin[2] = (int32_t)(0u - 273u * zero);
	p->begin[3] = (int32_t)(32768u * all - 4369u * zero);
}

/* Adds up bytes of a word without their signs, which are larger by 128. */
static inline uint32_t dense_nibbles_dsp_sum(uint32_t word, uint32_t sum)
{
	return __usada8(word ^ 0x80808080u, 0u, sum);
}

/* All filters at a row; the outputs of an incomplete eight go to `last`. */
static void dense_nibbles_dsp_row(const uint32_t *filters, struct eights *p, int8_t last[FILTERS],
				  bool incomplete)
{
	if (p->y != p->y_end) {
		filters = dense_nibbles_dsp_multiply(filters, p);
	}
	if (incomplete) {
		p->y = last;
		p->y_end = last + FILTERS;
		(void)dense_nibbles_dsp_multiply(filters, p);
	}
}

#ifdef __ARM_FEATURE_UNALIGNED

/* The same with the elements of a short row as int16, even ones before odd ones. */
__attribute__((noinline)) static void
dense_nibbles_dsp_short_row(const struct tinyml_dense_stream_s8 *p, struct eights *eights,
			    int8_t last[FILTERS], bool incomplete)
{
	uint32_t halves[SHORT / 2], *to = halves, sum = 0;
	const int8_t *x = eights->x, *const end = eights->end;

	for (; x != end || eights->rest > 0; x += 4, to += 2) {
		const uint32_t word = x == end ? eights->last_word : tinyml_load_word(x);

		to[0] = (uint32_t)tinyml_even_bytes(word);
		to[1] = (uint32_t)tinyml_odd_bytes(word);
		sum = dense_nibbles_dsp_sum(word, sum);
		if (x == end) {
			to += 2;
			break;
		}
	}
	dense_nibbles_dsp_begin(eights, p->weight_zero, sum - 256u * (uint32_t)(to - halves));
	eights->x = halves;
	eights->end = to;
	eights->skipped =
		BYTES_OF_CODE + (-((to - halves) / 2) & (ROUND_OF_HALVES - 1)) * CODE_OF_HALVES;
	dense_nibbles_dsp_row((const uint32_t *)p->filters, eights, last, incomplete);
}

#endif

void tinyml_dense_nibbles_dsp_s8(const struct tinyml_dense_stream_s8 *p, const int8_t *x, int8_t *y)
{
	const struct tinyml_output to =
		tinyml_output(p->round_once, p->out_zero, p->out_min, p->out_max);
	const int32_t inputs = p->inputs, words = inputs / 4, outputs = p->outputs;
	const int32_t rest = outputs % FILTERS;

	TINYML_ASSERT(TINYML_ALIGNED(p->filters, 4) && p->out_min <= p->out_max);
	for (int32_t left = p->rows; left > 0; left--, x += inputs, y += outputs) {
		int8_t last[FILTERS];
		struct eights eights = {
			.x = x,
			.end = x + 4 * words,
			.rest = inputs - 4 * words,
			.y = y,
			.twice_zero = to.twice_zero,
			.once = p->round_once               ? 1
				: p->out_min >= p->out_zero ? -1
							    : 0,
			.y_end = y + outputs - rest,
		};

		for (int32_t i = inputs; i > 4 * words; i--) {
			eights.last_word = eights.last_word << 8 | (uint8_t)x[i - 1];
		}
#ifdef __ARM_FEATURE_UNALIGNED
		if (inputs <= SHORT) {
			dense_nibbles_dsp_short_row(p, &eights, last, rest > 0);
		} else
#endif
		{
			uint32_t sum = eights.rest > 0
					       ? dense_nibbles_dsp_sum(eights.last_word, 0) - 512u
					       : 0;

			for (int32_t i = 0; i < words; i++) {
				sum = dense_nibbles_dsp_sum(tinyml_load_word(&x[4 * i]), sum);
			}
			dense_nibbles_dsp_begin(&eights, p->weight_zero,
						sum - 512u * (uint32_t)words);
			eights.skipped =
				(ROUND_OF_BYTES - 1 - (words - 1) % ROUND_OF_BYTES) * CODE_OF_BYTES;
			dense_nibbles_dsp_row((const uint32_t *)p->filters, &eights, last,
					      rest > 0);
		}
		for (int32_t i = 0; to.narrow && i < outputs - rest; i++) {
			y[i] = (int8_t)tinyml_clamp(y[i], to.low, to.high);
		}
		for (int32_t i = 0; i < rest; i++) {
			y[outputs - rest + i] = (int8_t)tinyml_clamp(last[i], to.low, to.high);
		}
	}
}

#endif /* TINYML_CORE_DSP */
