/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Attention on floats, query by query. Working memory: a row of scores. Without a bias, which the C
 * compiler sees, nothing of it is left.
 */

#ifndef TINYML_ATTENTION_F32_H_
#define TINYML_ATTENTION_F32_H_

#include <float.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tinyml/attention.h>
#include <tinyml/maths.h>

#define ATTENTION_F32_INLINE static inline __attribute__((always_inline))

/* How many keys a query sees; none if it is not above 0. */
static int32_t attention_f32_seen(const struct tinyml_heads *at, int32_t past, int32_t query)
{
	return past < at->keys - query - 1 ? query + past + 1 : at->keys;
}

/* Four products at a time, added in their order. */
ATTENTION_F32_INLINE float attention_f32_product(const float *a, const float *b, int32_t count)
{
	float sum = 0.0f;
	int32_t i = 0;

	for (; i < count - 3; i += 4) {
		sum += a[i] * b[i];
		sum += a[i + 1] * b[i + 1];
		sum += a[i + 2] * b[i + 2];
		sum += a[i + 3] * b[i + 3];
	}
	for (; i < count; i++) {
		sum += a[i] * b[i];
	}
	return sum;
}

/* Scores of keys `from` to `end` in scratch; returns the largest one, or `top` if that is larger.
 * `bias`: a number for each key, or NULL. `later`: of later keys, or NULL. */
ATTENTION_F32_INLINE float attention_f32_scores(const struct tinyml_attention_f32 *p,
						const struct tinyml_attention_floats *t,
						const float *q, const float *k, const float *bias,
						const struct tinyml_attention_bias *later,
						int32_t mask, int32_t from, int32_t end, float top)
{
	const uint8_t *visible = t->visible; /* a pack's may have any byte in place of a bool */
	float *scores = t->scratch;

	for (int32_t j = from; j < end; j++) {
		float score = attention_f32_product(q, k, p->at.depth) * p->scale;

		if (p->softcap != 0.0f) {
			score = tinyml_tanhf(score / p->softcap) * p->softcap;
		}
		if (bias != NULL) {
			score += bias[j];
		}
		if (t->mask != NULL) {
			score += t->mask[mask + j];
		} else if (visible != NULL && (visible[mask + j] == 0u) != p->inverted) {
			score = p->low;
		}
		if (later != NULL) {
			score = later->later_replaces ? later->later : score + later->later;
		}
		top = j == 0 || score > top ? score : top;
		scores[j] = score;
		k += p->at.k_step;
	}
	return top;
}

/* The same for keys after the `seen` ones. Seldom called. */
__attribute__((noinline, unused)) static float
attention_f32_later(const struct tinyml_attention_f32 *p, const struct tinyml_attention_bias *later,
		    const struct tinyml_attention_floats *t, const float *q, const float *k,
		    const float *bias, int32_t mask, int32_t seen, float top)
{
	return attention_f32_scores(p, t, q, &k[seen * p->at.k_step], bias, later, mask, seen,
				    p->at.keys, top);
}

/* exp of scores in their place; returns their sum, 0 if there is none. */
ATTENTION_F32_INLINE float attention_f32_exps(const struct tinyml_attention_f32 *p, float *scores,
					      int32_t seen, float top)
{
	float sum = 0.0f;

	if (p->empty && top < -FLT_MAX) {
		return 0.0f;
	}
	for (int32_t j = 0; j < seen; j++) {
		scores[j] = tinyml_expf(scores[j] - top);
		sum += scores[j];
	}
	return sum;
}

/* Four values, so that an output is read and written once; they are added in their order. */
static void attention_f32_add_four(const struct tinyml_heads *at, const float *weights,
				   const float *v, float *y)
{
	const float *v1 = &v[at->v_step];
	const float *v2 = &v1[at->v_step];
	const float *v3 = &v2[at->v_step];
	const float w0 = weights[0];
	const float w1 = weights[1];
	const float w2 = weights[2];
	const float w3 = weights[3];

	for (int32_t d = 0; d < at->values; d++) {
		float sum = y[d];

		sum += w0 * v[d];
		sum += w1 * v1[d];
		sum += w2 * v2[d];
		sum += w3 * v3[d];
		y[d] = sum;
	}
}

static void attention_f32_values(const struct tinyml_attention_f32 *p, const float *weights,
				 const float *v, float *y, int32_t seen, float sum)
{
	for (int32_t d = 0; d < p->at.values; d++) {
		y[d] = 0.0f;
	}
	if (sum <= 0.0f) {
		return;
	}
	int32_t j = 0;

	for (; j < seen - 3; j += 4) {
		attention_f32_add_four(&p->at, &weights[j], v, y);
		v += 4 * p->at.v_step;
	}
	for (; j < seen; j++) {
		const float weight = weights[j];

		for (int32_t d = 0; d < p->at.values; d++) {
			y[d] += weight * v[d];
		}
		v += p->at.v_step;
	}
	for (int32_t d = 0; d < p->at.values; d++) {
		y[d] /= sum;
	}
}

ATTENTION_F32_INLINE void attention_f32_heads(const struct tinyml_attention_f32 *p,
					      const struct tinyml_attention_bias *bias,
					      const struct tinyml_attention_floats *t)
{
	const int32_t *starts = p->at.starts;
	const int32_t past = t->past != NULL ? *t->past : p->at.past;

	for (int32_t h = 0; h < p->at.heads; h++) {
		const float *q = &t->q[starts[0]];
		const bool adds = bias != NULL && bias->values != NULL;
		const float *added = adds ? &bias->values[bias->starts[h]] : NULL;
		float *y = &t->y[starts[3]];
		int32_t mask = p->mask_starts != NULL ? p->mask_starts[h] : 0;

		for (int32_t i = 0; i < p->at.queries; i++) {
			const float *k = &t->k[starts[1]];
			int32_t seen = attention_f32_seen(&p->at, past, i);
			float top =
				attention_f32_scores(p, t, q, k, added, NULL, mask, 0, seen, 0.0f);

			if (bias != NULL && bias->later < 0.0f && top <= bias->later * 0.5f) {
				top = attention_f32_later(p, bias, t, q, k, added, mask, seen, top);
				seen = p->at.keys;
			}

			const float sum = attention_f32_exps(p, t->scratch, seen, top);

			attention_f32_values(p, t->scratch, &t->v[starts[2]], y, seen, sum);
			q += p->at.q_step;
			y += p->at.y_step;
			mask += p->mask_step;
			added = adds ? added + bias->step : NULL;
		}
		starts += 4;
	}
}

#endif /* TINYML_ATTENTION_F32_H_ */
