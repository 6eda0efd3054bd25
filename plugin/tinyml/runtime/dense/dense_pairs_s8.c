/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Dense layers with DSP instructions and two filters in one int16 (pairs_s8.h): a row meets four
 * filters at a time, the last one or two filters as a single pair. */

#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include <tinyml/dense.h>

#include "../weighted/dsp_s8.h"
#include "../weighted/pairs_s8.h"

/* A row of the input: whole words, and the remaining elements as one more word. */
struct row {
	uint32_t last_word; /* put together, so that no byte past the end is read */
	uint32_t rest;      /* elements in it */
	const int8_t *end;  /* of the whole words */
	const int8_t *x;
};
TINYML_OFFSET(struct row, last_word, 0);
TINYML_OFFSET(struct row, rest, 4);
TINYML_OFFSET(struct row, end, 8);
TINYML_OFFSET(struct row, x, 12);

#ifdef __ARM_FEATURE_UNALIGNED

/* The code of a word, so that the loop over four words can be entered in between. */
#define CODE_OF_A_WORD 64

/* The sums of four filters; returns what follows the weights. */
TINYML_ASSEMBLY static const uint32_t *dense_pairs_dot_four(const uint32_t *filters TINYML_UNSEEN,
							    const struct row *row TINYML_UNSEEN,
							    int32_t *sums TINYML_UNSEEN)
{
	/* clang-format off */
#define PRODUCTS                                                                                   \
	"ldmia.w r0!, {r9-r12}\n\t"                                                                \
	"sxtb16 r8, r3\n\t"                                                                        \
	"sxtb16 r3, r3, ror #8\n\t"                                                                \
	"smlad r4, r9, r8, r4\n\t"                                                                 \
	"sxtb16 r9, r9\n\t"                                                                        \
	"smlad r6, r10, r8, r6\n\t"                                                                \
	"sxtb16 r10, r10\n\t"                                                                      \
	"smlad r5, r9, r8, r5\n\t"                                                                 \
	"smlad r7, r10, r8, r7\n\t"                                                                \
	"smlad r4, r11, r3, r4\n\t"                                                                \
	"sxtb16 r11, r11\n\t"                                                                      \
	"smlad r6, r12, r3, r6\n\t"                                                                \
	"sxtb16 r12, r12\n\t"                                                                      \
	"smlad r5, r11, r3, r5\n\t"                                                                \
	"smlad r7, r12, r3, r7\n\t"
#define WORD                                                                                       \
	"ldr.w r3, [r1], #4\n\t"                                                                   \
	PRODUCTS
	__asm__ volatile(
		"push {r2, r4-r11, lr}\n\t"
		"ldmia r1, {r2, r3, r11, lr}\n\t" /* last word, rest, end, x */
		"push {r2, r3}\n\t"
		"ldmia r0!, {r4-r7}\n\t" /* biases */
		"add r4, r5, r4, lsl #8\n\t"
		"add r6, r7, r6, lsl #8\n\t"
		"mov r1, lr\n\t"
		"mov r2, r11\n\t"
		"subs r12, r1, r2\n\t"
		"beq 2f\n\t"
		"and r12, r12, #12\n\t"
		"lsl r12, r12, #4\n\t" /* bytes of code: CODE_OF_A_WORD for four of the row */
		"4:\n\t"
		"add pc, r12\n\t" /* from 4 bytes after this instruction */
		"nop\n\t"
		"1:\n\t"
		TINYML_CODE_BYTES("4b", "1b", 4)
		WORD
		WORD
		WORD
		WORD
		"5:\n\t"
		TINYML_CODE_BYTES("1b", "5b", 4 * CODE_OF_A_WORD)
		"cmp r1, r2\n\t"
		"bne 1b\n\t"
		"2:\n\t"
		"pop {r3, r12}\n\t"
		"cmp r12, #0\n\t"
		"beq 3f\n\t"
		PRODUCTS
		"3:\n\t"
		"sub r4, r4, r5\n\t"
		"sub r6, r6, r7\n\t"
		"asr r4, r4, #8\n\t"
		"asr r6, r6, #8\n\t"
		"pop {r2}\n\t"
		"stmia r2, {r4-r7}\n\t"
		"pop {r4-r11, pc}\n\t");
	/* clang-format on */
#undef WORD
#undef PRODUCTS
}

#else /* rows of the input may begin anywhere, and loads may trap */

static const uint32_t *dense_pairs_dot_four(const uint32_t *filters, const struct row *row,
					    int32_t sums[4])
{
	const int32_t *bias = (const int32_t *)filters;
	int32_t a0 = tinyml_pair_begin(bias[0], bias[1]), q0 = bias[1];
	int32_t a1 = tinyml_pair_begin(bias[2], bias[3]), q1 = bias[3];

	filters += 4;
	for (const int8_t *x = row->x; x != row->end || row->rest > 0u; x += 4, filters += 4) {
		const uint32_t word = x == row->end ? row->last_word : tinyml_load_word(x);
		const int16x2_t even = tinyml_even_bytes(word), odd = tinyml_odd_bytes(word);

		a0 = __smlad((int16x2_t)filters[0], even, a0);
		q0 = __smlad(tinyml_even_bytes(filters[0]), even, q0);
		a1 = __smlad((int16x2_t)filters[1], even, a1);
		q1 = __smlad(tinyml_even_bytes(filters[1]), even, q1);
		a0 = __smlad((int16x2_t)filters[2], odd, a0);
		q0 = __smlad(tinyml_even_bytes(filters[2]), odd, q0);
		a1 = __smlad((int16x2_t)filters[3], odd, a1);
		q1 = __smlad(tinyml_even_bytes(filters[3]), odd, q1);
		if (x == row->end) {
			filters += 4;
			break;
		}
	}
	sums[0] = tinyml_pair_first(a0, q0);
	sums[1] = q0;
	sums[2] = tinyml_pair_first(a1, q1);
	sums[3] = q1;
	return filters;
}

#endif

static const uint32_t *dense_pairs_dot_two(const uint32_t *filters, const struct row *row,
					   int32_t sums[2])
{
	const int32_t *bias = (const int32_t *)filters;
	int32_t a = tinyml_pair_begin(bias[0], bias[1]), q = bias[1];

	filters += 2;
	for (const int8_t *x = row->x; x != row->end || row->rest > 0u; x += 4, filters += 2) {
		const uint32_t word = x == row->end ? row->last_word : tinyml_load_word(x);
		const int16x2_t even = tinyml_even_bytes(word), odd = tinyml_odd_bytes(word);

		a = __smlad((int16x2_t)filters[0], even, a);
		q = __smlad(tinyml_even_bytes(filters[0]), even, q);
		a = __smlad((int16x2_t)filters[1], odd, a);
		q = __smlad(tinyml_even_bytes(filters[1]), odd, q);
		if (x == row->end) {
			filters += 2;
			break;
		}
	}
	sums[0] = tinyml_pair_first(a, q);
	sums[1] = q;
	return filters;
}

static inline int8_t dense_pairs_finish(int32_t sum, int32_t factor, int32_t exponent, bool once,
					const struct tinyml_output *to)
{
	const int32_t q = tinyml_output_dsp(sum, factor, exponent, once, to->twice_zero);

	return (int8_t)(to->narrow ? tinyml_clamp(q, to->low, to->high) : q);
}

static inline __attribute__((always_inline)) void
dense_pairs_multiply(const struct row *row, const uint32_t *w, int32_t outputs, int8_t *y,
		     bool once, const struct tinyml_output *to)
{
	int32_t sums[4];

	for (; outputs >= 4; outputs -= 4, y += 4, w += 5) {
		const int32_t *factor;
		const int8_t *exponent;

		w = dense_pairs_dot_four(w, row, sums);
		factor = (const int32_t *)w;
		exponent = (const int8_t *)&w[4];
		y[0] = dense_pairs_finish(sums[0], factor[0], exponent[0], once, to);
		y[1] = dense_pairs_finish(sums[1], factor[1], exponent[1], once, to);
		y[2] = dense_pairs_finish(sums[2], factor[2], exponent[2], once, to);
		y[3] = dense_pairs_finish(sums[3], factor[3], exponent[3], once, to);
	}
	if (outputs > 0) {
		const bool four = outputs == 3;
		const int8_t *exponent;

		w = four ? dense_pairs_dot_four(w, row, sums) : dense_pairs_dot_two(w, row, sums);
		exponent = (const int8_t *)&w[four ? 4 : 2];
		for (int32_t i = 0; i < outputs; i++) {
			y[i] = dense_pairs_finish(sums[i], (int32_t)w[i], exponent[i], once, to);
		}
	}
}

void tinyml_dense_pairs_s8(const struct tinyml_dense_stream_s8 *p, const int8_t *x, int8_t *y)
{
	const struct tinyml_output to =
		tinyml_output(p->round_once, p->out_zero, p->out_min, p->out_max);
	const uint32_t *filters = (const uint32_t *)p->filters;
	const int32_t inputs = p->inputs, whole = inputs & ~3;

	for (int32_t left = p->rows; left > 0; left--, x += inputs, y += p->outputs) {
		struct row row = {.rest = (uint32_t)(inputs - whole), .end = x + whole, .x = x};

		for (int32_t i = inputs; i > whole; i--) {
			row.last_word = row.last_word << 8 | (uint8_t)x[i - 1];
		}
		if (p->round_once) {
			dense_pairs_multiply(&row, filters, p->outputs, y, true, &to);
		} else {
			dense_pairs_multiply(&row, filters, p->outputs, y, false, &to);
		}
	}
}

#endif /* TINYML_CORE_DSP */
