/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Attention on int8 with DSP instructions: two queries by two keys at a time, then two rows of
 * weights by two columns of values, in pairs of int16. The values of a head are transposed first,
 * so that both products read rows. Without a mask or a bias, which the C compiler sees, nothing of
 * it is left.
 */

#ifndef TINYML_ATTENTION_DSP_S8_H_
#define TINYML_ATTENTION_DSP_S8_H_

#include <stdbool.h>
#include <stdint.h>

#include <tinyml/attention.h>

#include "../weighted/dsp_s8.h"
#include "attention_s8.h"

struct rows {
	uint32_t *columns; /* of two queries, then of their weights */
	int8_t *scores[2];
	int8_t *values; /* transposed */
	uint8_t *blind; /* the keys of two queries that see none, if need be */
	int32_t keys;   /* a multiple of four */
};

#define BLOCK 16 /* rows whose sums are on the stack */

/* Adds products of two rows of bytes with two columns: for each four elements the even ones of both
 * columns, then the odd ones. In assembly, because compilers need a third more instructions. */
static inline void attention_dsp_products(const int8_t *k0, const int8_t *k1,
					  const uint32_t *columns, const uint32_t *end,
					  const int32_t totals[2], int32_t sums[4])
{
	int32_t s00 = totals[0], s01 = totals[1], s10 = totals[0], s11 = totals[1];
	uint32_t a, b, x0, x1, w;

	/* clang-format off */
#define FOUR_ELEMENTS                                                                              \
	"ldr %[a], [%[k0]], #4\n\t"                                                                \
	"ldr %[b], [%[k1]], #4\n\t"                                                                \
	"ldrd %[x0], %[x1], [%[columns]], #8\n\t"                                                  \
	"sxtb16 %[w], %[a]\n\t"                                                                    \
	"smlad %[s00], %[w], %[x0], %[s00]\n\t"                                                    \
	"smlad %[s01], %[w], %[x1], %[s01]\n\t"                                                    \
	"sxtb16 %[w], %[b]\n\t"                                                                    \
	"smlad %[s10], %[w], %[x0], %[s10]\n\t"                                                    \
	"smlad %[s11], %[w], %[x1], %[s11]\n\t"                                                    \
	"ldrd %[x0], %[x1], [%[columns]], #8\n\t"                                                  \
	"sxtb16 %[w], %[a], ror #8\n\t"                                                            \
	"smlad %[s00], %[w], %[x0], %[s00]\n\t"                                                    \
	"smlad %[s01], %[w], %[x1], %[s01]\n\t"                                                    \
	"sxtb16 %[w], %[b], ror #8\n\t"                                                            \
	"smlad %[s10], %[w], %[x0], %[s10]\n\t"                                                    \
	"smlad %[s11], %[w], %[x1], %[s11]\n\t"

	__asm__ volatile(
		"sub %[w], %[end], %[columns]\n\t"
		"lsls %[w], %[w], #27\n\t" /* an odd number of fours: enter in the middle */
		"bmi 2f\n"
		"1:\n\t"
		FOUR_ELEMENTS
		"2:\n\t"
		FOUR_ELEMENTS
		"cmp %[columns], %[end]\n\t"
		"bne 1b\n\t"
		: [k0] "+r"(k0), [k1] "+r"(k1), [columns] "+r"(columns), [s00] "+r"(s00),
		  [s01] "+r"(s01), [s10] "+r"(s10), [s11] "+r"(s11), [a] "=&r"(a), [b] "=&r"(b),
		  [x0] "=&r"(x0), [x1] "=&r"(x1), [w] "=&r"(w)
		: [end] "r"(end)
		: "memory", "cc");
	/* clang-format on */
#undef FOUR_ELEMENTS
	sums[0] = s00;
	sums[1] = s01;
	sums[2] = s10;
	sums[3] = s11;
}

/* Products of up to BLOCK rows with both columns; the last row may be alone. */
__attribute__((noinline)) static void attention_dsp_block(const int8_t *k, int32_t step,
							  int32_t count, const uint32_t *columns,
							  const uint32_t *end,
							  const int32_t totals[2], int32_t *sums)
{
	for (; count > 0; count -= 2) {
		const int8_t *next = count > 1 ? k + step : k;

		attention_dsp_products(k, next, columns, end, totals, sums);
		sums += 4;
		k = next + step;
	}
}

/* Every other sum to a byte, as attention_s8_score(). Without places, the mask is 0 and the slow
 * way is taken. */
__attribute__((noinline)) static void attention_dsp_scale_row(const struct attention_s8_scale *by,
							      const int8_t *table,
							      const int32_t *sums, int32_t count,
							      int8_t *to)
{
	const int32_t multiplier = by->multiplier, places = by->places, zero = by->zero;
	const int32_t half = INT32_C(1) << (places > 0 ? places - 1 : 0);
	const int32_t mask = (INT32_C(1) << places) - 1;

	for (const int8_t *end = to + count; to != end; sums += 2) {
		const int32_t high = (int32_t)(tinyml_wide_product(*sums, multiplier) >> 32) + half;
		const int32_t score = ((high + 1) & mask) > 1
					      ? tinyml_saturate_s8((high >> places) + zero)
					      : attention_s8_slowly(by, *sums);

		*to++ = table != NULL ? table[score + 128] : (int8_t)score;
	}
}

/* Two queries as columns, less their zero point; what their sums add to each score. */
static void attention_dsp_queries(const struct tinyml_attention_s8 *p, const struct rows *rows,
				  const int8_t *const q[2], int32_t totals[2])
{
	const uint32_t zeros = ((uint32_t)p->q_zero & 0xffffu) | ((uint32_t)p->q_zero << 16);
	uint32_t *to = rows->columns;

	totals[0] = 0;
	totals[1] = 0;
	for (int32_t i = 0; i < p->at.depth; i += 4) {
		for (int32_t r = 0; r < 2; r++) {
			const uint32_t word = tinyml_load_word(&q[r][i]);
			const int16x2_t even = __ssub16(tinyml_even_bytes(word), (int16x2_t)zeros);
			const int16x2_t odd = __ssub16(tinyml_odd_bytes(word), (int16x2_t)zeros);

			to[r] = (uint32_t)even;
			to[2 + r] = (uint32_t)odd;
			totals[r] = __smlad(even, 0x10001, totals[r]);
			totals[r] = __smlad(odd, 0x10001, totals[r]);
		}
		to += 4;
	}
	totals[0] *= -p->k_zero;
	totals[1] *= -p->k_zero;
}

/* The scores of both queries with the keys that the second one sees. */
static void attention_dsp_scores(const struct tinyml_attention_s8 *p, const struct rows *rows,
				 const int8_t *k, int32_t seen, const int32_t totals[2])
{
	const struct attention_s8_scale by = attention_s8_score_scale(p);
	const uint32_t *end = &rows->columns[p->at.depth];
	int32_t sums[2 * BLOCK];

	for (int32_t j = 0; j < seen; j += BLOCK) {
		const int32_t count = seen - j < BLOCK ? seen - j : BLOCK;

		attention_dsp_block(&k[j * p->at.k_step], p->at.k_step, count, rows->columns, end,
				    totals, sums);
		attention_dsp_scale_row(&by, p->table, &sums[0], count, &rows->scores[0][j]);
		attention_dsp_scale_row(&by, p->table, &sums[1], count, &rows->scores[1][j]);
	}
}

/* Adds a bias to a row of scores. */
__attribute__((noinline)) static void
attention_dsp_add_bias(const struct tinyml_attention_s8_bias *bias, const int8_t *values,
		       int32_t count, int8_t *scores)
{
	const struct tinyml_attention_s8_bias by = *bias;

	for (const int8_t *end = scores + count; scores != end; scores++) {
		*scores = (int8_t)attention_s8_sum(&by, *scores, *values++);
	}
}

/* Four weights by table, where they are in a column; returns their sum. */
__attribute__((noinline)) static int32_t
attention_dsp_quick_weights(const struct attention_s8_row *row, const int8_t *scores, int32_t count,
			    uint16_t *to)
{
	const uint32_t *exps = row->exps;
	const uint32_t factor = row->factor, half = UINT32_C(1) << (row->shift - 33);
	const int32_t top = row->top, shift = row->shift - 32;
	int32_t total = 0;

#define WEIGHT(i)                                                                                  \
	__usat((int32_t)(((uint32_t)(((uint64_t)exps[top - scores[i]] * factor) >> 32) + half) >>  \
			 shift),                                                                   \
	       8)
	for (const int8_t *end = scores + count; scores != end; scores += 4) {
		const uint32_t w0 = WEIGHT(0), w1 = WEIGHT(1), w2 = WEIGHT(2), w3 = WEIGHT(3);

		to[0] = (uint16_t)w0;
		to[1] = (uint16_t)w2;
		to[4] = (uint16_t)w1;
		to[5] = (uint16_t)w3;
		total += (int32_t)(w0 + w1 + w2 + w3);
		to += 8;
	}
#undef WEIGHT
	return total;
}

/* A row of scores becomes a column of weights, with zeros for keys that its query does not see;
 * returns their sum. */
static int32_t attention_dsp_weights(const struct tinyml_attention_s8 *p, const struct rows *rows,
				     int32_t r, int32_t seen, int32_t padded)
{
	const int8_t *scores = rows->scores[r];
	uint16_t *to = (uint16_t *)&rows->columns[r];
	const struct attention_s8_row row = attention_s8_row_of(p, scores, seen);
	int32_t total = 0, done = 0;

	if (row.by_table && row.shift > 32 && row.high == 255) {
		done = seen & ~3;
		total = attention_dsp_quick_weights(&row, scores, done, to);
		to += 2 * done;
	}
	for (int32_t j = done; j < padded; j += 4) {
		for (int32_t i = 0; i < 4; i++) {
			const int32_t weight =
				j + i < seen ? attention_s8_weight(&row, scores[j + i]) : 0;

			to[(i & 1) * 4 + (i >> 1)] = (uint16_t)weight;
			total += weight;
		}
		to += 8;
	}
	return total;
}

static void attention_dsp_values(const struct tinyml_attention_s8 *p, const struct rows *rows,
				 int8_t *const y[2], int32_t padded, const int32_t totals[2])
{
	const struct attention_s8_scale by = attention_s8_output_scale(p);
	const uint32_t *end = &rows->columns[padded];
	int32_t sums[2 * BLOCK];

	for (int32_t d = 0; d < p->at.values; d += BLOCK) {
		const int32_t count = p->at.values - d < BLOCK ? p->at.values - d : BLOCK;

		attention_dsp_block(&rows->values[d * rows->keys], rows->keys, count, rows->columns,
				    end, totals, sums);
		attention_dsp_scale_row(&by, NULL, &sums[0], count, &y[0][d]);
		attention_dsp_scale_row(&by, NULL, &sums[1], count, &y[1][d]);
	}
}

/* The same where keys between others are hidden, whose weights are zeros. */
__attribute__((noinline)) static int32_t attention_dsp_gaps(const struct tinyml_attention_s8 *p,
							    const struct rows *rows, int32_t r,
							    const struct attention_s8_view *view,
							    int32_t padded)
{
	const int8_t *scores = rows->scores[r];
	uint16_t *to = (uint16_t *)&rows->columns[r];
	const struct attention_s8_row row = attention_s8_row_of(p, scores, view->count);
	int32_t total = 0;

	for (int32_t j = 0; j < padded; j += 4) {
		for (int32_t i = 0; i < 4; i++) {
			const bool visible =
				j + i < view->seen && attention_s8_visible(view, j + i);
			const int32_t weight = visible ? attention_s8_weight(&row, *scores++) : 0;

			to[(i & 1) * 4 + (i >> 1)] = (uint16_t)weight;
			total += weight;
		}
		to += 8;
	}
	return total;
}

/* With a mask: also for a query that sees no key. */
static int32_t attention_dsp_masked_weights(const struct tinyml_attention_s8 *p,
					    const struct rows *rows, int32_t r,
					    const struct attention_s8_view *view, int32_t padded)
{
	if (view->count == 0) {
		uint16_t *to = (uint16_t *)&rows->columns[r];

		for (int32_t j = 0; j < padded; j += 4) {
			to[0] = 0;
			to[1] = 0;
			to[4] = 0;
			to[5] = 0;
			to += 8;
		}
		return 0;
	}
	attention_s8_compact(view, rows->scores[r]);
	return view->row == NULL ? attention_dsp_weights(p, rows, r, view->seen, padded)
				 : attention_dsp_gaps(p, rows, r, view, padded);
}

ATTENTION_S8_INLINE void attention_dsp_head(const struct tinyml_attention_s8 *p,
					    const struct tinyml_attention_mask *mask,
					    const struct tinyml_attention_s8_bias *bias,
					    const struct tinyml_attention_bytes *t,
					    const struct rows *rows, int32_t head)
{
	const struct tinyml_heads *at = &p->at;
	const int32_t *starts = &at->starts[4 * head];
	const int8_t *q = &t->q[starts[0]];
	int8_t *y = &t->y[starts[3]];

	attention_s8_transpose(at, &t->v[starts[2]], rows->values, rows->keys);
	for (int32_t i = 0; i < at->queries; i += 2) {
		/* the last query may be alone: then it is computed twice */
		const bool pair = i + 1 < at->queries;
		const int8_t *const queries[2] = {q, pair ? q + at->q_step : q};
		int8_t *const outputs[2] = {y, pair ? y + at->y_step : y};
		const struct attention_s8_view first =
			attention_s8_look(at, mask, head, i, rows->blind);
		const struct attention_s8_view second =
			pair ? attention_s8_look(at, mask, head, i + 1, &rows->blind[rows->keys])
			     : first;
		const int32_t seen =
			mask != NULL && first.seen > second.seen ? first.seen : second.seen;
		/* products of no element are not computed */
		const int32_t padded = mask != NULL && seen == 0 ? 4 : (seen + 3) & ~3;
		int32_t totals[2];

		attention_dsp_queries(p, rows, queries, totals);
		attention_dsp_scores(p, rows, &t->k[starts[1]], seen, totals);
		if (bias != NULL) {
			attention_dsp_add_bias(bias, attention_s8_values(bias, head, i), seen,
					       rows->scores[0]);
			attention_dsp_add_bias(bias,
					       attention_s8_values(bias, head, pair ? i + 1 : i),
					       seen, rows->scores[1]);
		}
		if (mask == NULL) {
			totals[0] = attention_dsp_weights(p, rows, 0, first.seen, padded);
			totals[1] = attention_dsp_weights(p, rows, 1, seen, padded);
		} else {
			totals[0] = attention_dsp_masked_weights(p, rows, 0, &first, padded);
			totals[1] = attention_dsp_masked_weights(p, rows, 1, &second, padded);
		}
		totals[0] *= -p->v_zero;
		totals[1] *= -p->v_zero;
		attention_dsp_values(p, rows, outputs, padded, totals);
		q += 2 * at->q_step;
		y += 2 * at->y_step;
	}
}

ATTENTION_S8_INLINE void attention_dsp_heads(const struct tinyml_attention_s8 *p,
					     const struct tinyml_attention_mask *mask,
					     const struct tinyml_attention_s8_bias *bias,
					     const struct tinyml_attention_bytes *t)
{
	const int32_t keys = (p->at.keys + 3) & ~3;
	struct rows rows = {.columns = t->scratch, .keys = keys};

	rows.scores[0] = (int8_t *)&rows.columns[p->at.depth > keys ? p->at.depth : keys];
	rows.scores[1] = rows.scores[0] + keys;
	rows.values = rows.scores[1] + keys;
	rows.blind = (uint8_t *)&rows.values[p->at.values * keys];
	for (int32_t h = 0; h < p->at.heads; h++) {
		attention_dsp_head(p, mask, bias, t, &rows, h);
	}
}

#endif /* TINYML_ATTENTION_DSP_S8_H_ */
