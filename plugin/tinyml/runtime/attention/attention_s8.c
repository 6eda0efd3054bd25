/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Attention on int8, query by query. Working memory: the query, the sums of an output, a row of
 * scores that become weights. */

#include <stdint.h>

#include <tinyml/attention.h>

#include "attention_s8.h"

struct rows {
	int32_t *sums; /* one for each element of a value */
	int16_t *query;
	int8_t *scores;
};

/* The scores of the keys that a query sees. */
static void attention_s8_scores(const struct tinyml_attention_s8 *p, const struct rows *rows,
				const int8_t *k, int32_t seen)
{
	const int32_t depth = p->at.depth;
	const struct attention_s8_scale by = attention_s8_score_scale(p);
	const int8_t *table = p->table;
	int32_t total = 0;

	for (int32_t i = 0; i < depth; i++) {
		total += rows->query[i];
	}
	total *= -p->k_zero;
	for (int32_t j = 0; j < seen; j++) {
		int32_t sum = total;

		for (int32_t i = 0; i < depth; i++) {
			sum += rows->query[i] * k[i];
		}
		rows->scores[j] = attention_s8_score(&by, table, sum);
		k += p->at.k_step;
	}
}

static void attention_s8_values(const struct tinyml_attention_s8 *p, const struct rows *rows,
				const int8_t *v, int8_t *y, int32_t seen)
{
	const struct attention_s8_row row = attention_s8_row_of(p, rows->scores, seen);
	const struct attention_s8_scale by = attention_s8_output_scale(p);
	const int32_t values = p->at.values;
	int32_t total = 0;

	for (int32_t d = 0; d < values; d++) {
		rows->sums[d] = 0;
	}
	for (int32_t j = 0; j < seen; j++) {
		const int32_t weight = attention_s8_weight(&row, rows->scores[j]);

		if (weight != 0) {
			total += weight;
			for (int32_t d = 0; d < values; d++) {
				rows->sums[d] += weight * v[d];
			}
		}
		v += p->at.v_step;
	}
	total *= p->v_zero;
	for (int32_t d = 0; d < values; d++) {
		y[d] = (int8_t)attention_s8_scaled(&by, rows->sums[d] - total);
	}
}

void tinyml_attention_s8(const struct tinyml_attention_s8 *p,
			 const struct tinyml_attention_bytes *t)
{
	struct rows rows = {.sums = t->scratch};
	const int32_t *starts = p->at.starts;

	rows.query = (int16_t *)&rows.sums[p->at.values];
	rows.scores = (int8_t *)&rows.query[p->at.depth];
	for (int32_t h = 0; h < p->at.heads; h++) {
		const int8_t *q = &t->q[starts[0]];
		int8_t *y = &t->y[starts[3]];

		for (int32_t i = 0; i < p->at.queries; i++) {
			const int32_t seen = attention_s8_seen(&p->at, i);

			for (int32_t d = 0; d < p->at.depth; d++) {
				rows.query[d] = (int16_t)(q[d] - p->q_zero);
			}
			attention_s8_scores(p, &rows, &t->k[starts[1]], seen);
			attention_s8_values(p, &rows, &t->v[starts[2]], y, seen);
			q += p->at.q_step;
			y += p->at.y_step;
		}
		starts += 4;
	}
}
