/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Attention on int8, query by query. Working memory: the query, the sums of an output, a row of
 * scores that become weights. Keys that a mask hides have no score: those of the others follow each
 * other. Without a mask or a bias, which the C compiler sees, nothing of it is left.
 */

#ifndef TINYML_ATTENTION_ROWS_S8_H_
#define TINYML_ATTENTION_ROWS_S8_H_

#include <string.h>

#include "attention_s8.h"

struct rows {
	int32_t *sums; /* one for each element of a value */
	int16_t *query;
	int8_t *scores;
	uint8_t *blind; /* the keys of a query that sees none, if need be */
};

/* The scores of the keys that a query sees. `values`: what `bias` adds to them. */
ATTENTION_S8_INLINE void attention_rows_s8_scores(const struct tinyml_attention_s8 *p,
						  const struct tinyml_attention_s8_bias *bias,
						  const int8_t *values, const struct rows *rows,
						  const int8_t *k,
						  const struct attention_s8_view *view)
{
	const struct tinyml_attention_s8_bias added =
		bias != NULL ? *bias : (struct tinyml_attention_s8_bias){.shift = 0};
	const int32_t depth = p->at.depth;
	const struct attention_s8_scale by = attention_s8_score_scale(p);
	const int8_t *table = p->table;
	int32_t total = 0, count = 0;

	for (int32_t i = 0; i < depth; i++) {
		total += rows->query[i];
	}
	total *= -p->k_zero;
	for (int32_t j = 0; j < view->seen; j++) {
		if (attention_s8_visible(view, j)) {
			int32_t sum = total;

			for (int32_t i = 0; i < depth; i++) {
				sum += rows->query[i] * k[i];
			}
			sum = attention_s8_score(&by, table, sum);
			sum = bias != NULL ? attention_s8_sum(&added, sum, values[j]) : sum;
			rows->scores[view->row == NULL ? j : count++] =
				(int8_t)(view->level ? 0 : sum);
		}
		k += p->at.k_step;
	}
}

ATTENTION_S8_INLINE void attention_rows_s8_values(const struct tinyml_attention_s8 *p,
						  const struct rows *rows, const int8_t *v,
						  int8_t *y, const struct attention_s8_view *view)
{
	const struct attention_s8_row row = attention_s8_row_of(p, rows->scores, view->count);
	const struct attention_s8_scale by = attention_s8_output_scale(p);
	const int32_t values = p->at.values;
	int32_t total = 0, number = 0;

	for (int32_t d = 0; d < values; d++) {
		rows->sums[d] = 0;
	}
	for (int32_t j = 0; j < view->seen; j++) {
		if (attention_s8_visible(view, j)) {
			const int32_t weight = attention_s8_weight(
				&row, rows->scores[view->row == NULL ? j : number++]);

			if (weight != 0) {
				total += weight;
				for (int32_t d = 0; d < values; d++) {
					rows->sums[d] += weight * v[d];
				}
			}
		}
		v += p->at.v_step;
	}
	total *= p->v_zero;
	for (int32_t d = 0; d < values; d++) {
		y[d] = (int8_t)attention_s8_scaled(&by, rows->sums[d] - total);
	}
}

ATTENTION_S8_INLINE void attention_rows_s8_heads(const struct tinyml_attention_s8 *p,
						 const struct tinyml_attention_mask *mask,
						 const struct tinyml_attention_s8_bias *bias,
						 const struct tinyml_attention_bytes *t)
{
	struct rows rows = {.sums = t->scratch};
	const int32_t *starts = p->at.starts;

	rows.query = (int16_t *)&rows.sums[p->at.values];
	rows.scores = (int8_t *)&rows.query[p->at.depth];
	rows.blind = (uint8_t *)&rows.scores[p->at.keys];
	for (int32_t h = 0; h < p->at.heads; h++) {
		const int8_t *q = &t->q[starts[0]];
		int8_t *y = &t->y[starts[3]];

		for (int32_t i = 0; i < p->at.queries; i++) {
			const struct attention_s8_view view =
				attention_s8_look(&p->at, mask, h, i, rows.blind);
			const int8_t *values =
				bias != NULL ? attention_s8_values(bias, h, i) : NULL;

			for (int32_t d = 0; d < p->at.depth; d++) {
				rows.query[d] = (int16_t)(q[d] - p->q_zero);
			}
			if (mask != NULL && view.count == 0) {
				memset(y, p->out_zero, (size_t)p->at.values);
			} else {
				attention_rows_s8_scores(p, bias, values, &rows, &t->k[starts[1]],
							 &view);
				attention_rows_s8_values(p, &rows, &t->v[starts[2]], y, &view);
			}
			q += p->at.q_step;
			y += p->at.y_step;
		}
		starts += 4;
	}
}

#endif /* TINYML_ATTENTION_ROWS_S8_H_ */
