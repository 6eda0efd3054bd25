/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Attention on int8, query by query. Working memory: the query, the sums of an output, a row of
 * scores that become weights. Keys that a mask hides have no score: those of the others follow each
 * other. Without a mask, which the compiler sees, nothing of it is left.
 */

#ifndef TINYML_ATTENTION_ROWS_S8_H_
#define TINYML_ATTENTION_ROWS_S8_H_

#include "attention_s8.h"

#define ATTENTION_ROWS_S8_INLINE static inline __attribute__((always_inline))

struct rows {
	int32_t *sums; /* one for each element of a value */
	int16_t *query;
	int8_t *scores;
};

static inline bool attention_rows_s8_visible(const uint8_t *visible, int32_t key)
{
	return visible == NULL || visible[key] != 0u;
}

/* Which keys the queries of a head see. */
static inline const uint8_t *attention_rows_s8_mask(const struct tinyml_attention_s8 *p,
						    const uint8_t *visible, int32_t head)
{
	if (visible == NULL || p->visible_starts == NULL) {
		return visible;
	}
	return &visible[p->visible_starts[head]];
}

/* The scores of the keys that a query sees; returns how many these are. */
ATTENTION_ROWS_S8_INLINE int32_t attention_rows_s8_scores(const struct tinyml_attention_s8 *p,
							  const struct rows *rows, const int8_t *k,
							  const uint8_t *visible, int32_t seen)
{
	const int32_t depth = p->at.depth;
	const struct attention_s8_scale by = attention_s8_score_scale(p);
	const int8_t *table = p->table;
	int32_t total = 0, count = 0;

	for (int32_t i = 0; i < depth; i++) {
		total += rows->query[i];
	}
	total *= -p->k_zero;
	for (int32_t j = 0; j < seen; j++) {
		if (attention_rows_s8_visible(visible, j)) {
			int32_t sum = total;

			for (int32_t i = 0; i < depth; i++) {
				sum += rows->query[i] * k[i];
			}
			rows->scores[visible == NULL ? j : count++] =
				attention_s8_score(&by, table, sum);
		}
		k += p->at.k_step;
	}
	return visible == NULL ? seen : count;
}

ATTENTION_ROWS_S8_INLINE void attention_rows_s8_values(const struct tinyml_attention_s8 *p,
						       const struct rows *rows, const int8_t *v,
						       int8_t *y, const uint8_t *visible,
						       int32_t seen, int32_t count)
{
	const struct attention_s8_row row = attention_s8_row_of(p, rows->scores, count);
	const struct attention_s8_scale by = attention_s8_output_scale(p);
	const int32_t values = p->at.values;
	int32_t total = 0, number = 0;

	for (int32_t d = 0; d < values; d++) {
		rows->sums[d] = 0;
	}
	for (int32_t j = 0; j < seen; j++) {
		if (attention_rows_s8_visible(visible, j)) {
			const int32_t weight = attention_s8_weight(
				&row, rows->scores[visible == NULL ? j : number++]);

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

/* `visible`: for each query and key, whether the query sees the key; or NULL. */
ATTENTION_ROWS_S8_INLINE void attention_rows_s8_heads(const struct tinyml_attention_s8 *p,
						      const struct tinyml_attention_bytes *t,
						      const uint8_t *visible)
{
	struct rows rows = {.sums = t->scratch};
	const int32_t *starts = p->at.starts;

	rows.query = (int16_t *)&rows.sums[p->at.values];
	rows.scores = (int8_t *)&rows.query[p->at.depth];
	for (int32_t h = 0; h < p->at.heads; h++) {
		const int8_t *q = &t->q[starts[0]];
		const uint8_t *mask = attention_rows_s8_mask(p, visible, h);
		int8_t *y = &t->y[starts[3]];

		for (int32_t i = 0; i < p->at.queries; i++) {
			const int32_t seen = attention_s8_seen(&p->at, i);
			int32_t count;

			for (int32_t d = 0; d < p->at.depth; d++) {
				rows.query[d] = (int16_t)(q[d] - p->q_zero);
			}
			count = attention_rows_s8_scores(p, &rows, &t->k[starts[1]], mask, seen);
			attention_rows_s8_values(p, &rows, &t->v[starts[2]], y, mask, seen, count);
			q += p->at.q_step;
			y += p->at.y_step;
			mask = mask == NULL ? NULL : mask + p->at.keys;
		}
		starts += 4;
	}
}

#endif /* TINYML_ATTENTION_ROWS_S8_H_ */
