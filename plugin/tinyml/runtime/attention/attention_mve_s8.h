/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Attention on int8 with Helium: a query by four keys, then a row of weights by four columns of
 * values, sixteen elements at a time. The values of a head are transposed first, so that both
 * products read rows. Without a mask or a bias, which the C compiler sees, nothing of it is left.
 */

#ifndef TINYML_ATTENTION_MVE_S8_H_
#define TINYML_ATTENTION_MVE_S8_H_

#include <arm_mve.h>
#include <stdint.h>
#include <string.h>

#include <tinyml/attention.h>

#include "attention_s8.h"

struct rows {
	int32_t *key_sums;   /* what the zero point of queries adds to each score */
	int32_t *value_sums; /* what the zero point of weights adds to each output */
	int8_t *scores;      /* then weights, with their zero point */
	int8_t *values;      /* transposed */
	uint8_t *blind;      /* the keys of a query that sees none, if need be */
	int32_t keys;        /* a multiple of sixteen */
};

/* Adds the products of a row with four others. In assembly, because compilers do not make loops of
 * this kind, which predicate the last vector. */
static inline void attention_mve_products(const int8_t *x, const int8_t *w0, int32_t step,
					  int32_t count, int32_t sums[4])
{
	const int8_t *w1 = w0 + step, *w2 = w1 + step, *w3 = w2 + step;
	int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];

	/* clang-format off */
	__asm__ volatile(
		"wlstp.8 lr, %[count], 2f\n"
		"1:\n\t"
		"vldrb.8 q0, [%[x]], #16\n\t"
		"vldrb.8 q1, [%[w0]], #16\n\t"
		"vmladava.s8 %[s0], q0, q1\n\t"
		"vldrb.8 q2, [%[w1]], #16\n\t"
		"vmladava.s8 %[s1], q0, q2\n\t"
		"vldrb.8 q1, [%[w2]], #16\n\t"
		"vmladava.s8 %[s2], q0, q1\n\t"
		"vldrb.8 q2, [%[w3]], #16\n\t"
		"vmladava.s8 %[s3], q0, q2\n\t"
		"letp lr, 1b\n"
		"2:"
		: [x] "+r"(x), [w0] "+r"(w0), [w1] "+r"(w1), [w2] "+r"(w2), [w3] "+r"(w3),
		  [s0] "+Te"(s0), [s1] "+Te"(s1), [s2] "+Te"(s2), [s3] "+Te"(s3)
		: [count] "r"(count)
		: "lr", "q0", "q1", "q2", "memory");
	/* clang-format on */
	sums[0] = s0;
	sums[1] = s1;
	sums[2] = s2;
	sums[3] = s3;
}

static int32_t attention_mve_sum(const int8_t *x, int32_t count)
{
	int32_t sum = 0;

	for (; count > 0; count -= 16) {
		sum = vaddvaq_s8(sum, vldrbq_z_s8(x, vctp8q((uint32_t)count)));
		x += 16;
	}
	return sum;
}

/* Four sums to bytes, as attention_s8_scaled(). */
static inline int32x4_t attention_mve_scaled(const struct attention_s8_scale *by,
					     const int32_t sums[4])
{
	const int32x4_t four = vldrwq_s32(sums);

	if (by->places > 0) {
		const int32x4_t half = vdupq_n_s32(INT32_C(1) << (by->places - 1));
		const int32x4_t mask = vdupq_n_s32((INT32_C(1) << by->places) - 1);
		const int32x4_t high =
			vaddq_s32(vmulhq_s32(four, vdupq_n_s32(by->multiplier)), half);
		const int32x4_t rest = vandq_s32(vaddq_n_s32(high, 1), mask);

		if (vcmpleq_n_s32(rest, 1) == 0) {
			const int32x4_t scaled =
				vaddq_n_s32(vshlq_r_s32(high, -by->places), by->zero);

			return vmaxq_s32(vminq_s32(scaled, vdupq_n_s32(INT8_MAX)),
					 vdupq_n_s32(INT8_MIN));
		}
	}

	int32_t bytes[4];

	for (int32_t i = 0; i < 4; i++) {
		bytes[i] = attention_s8_slowly(by, sums[i]);
	}
	return vldrwq_s32(bytes);
}

/* Rows have room for a multiple of sixteen scores. */
static void attention_mve_scores(const struct tinyml_attention_s8 *p, const struct rows *rows,
				 const int8_t *q, const int8_t *k, int32_t seen)
{
	const struct attention_s8_scale by = attention_s8_score_scale(p);
	const int32_t depth = p->at.depth, step = p->at.k_step;
	const int32_t total = -p->k_zero * (attention_mve_sum(q, depth) - depth * p->q_zero);
	const int32_t *key_sums = rows->key_sums;
	const int8_t *table = p->table;
	int8_t *scores = rows->scores;

	for (int32_t j = 0, rows_at_once; j < seen; j += rows_at_once) {
		int32_t sums[4];

		/* fewer than four keys: one by one */
		rows_at_once = seen - j < 4 ? 1 : 4;

		const mve_pred16_t some = vctp32q((uint32_t)rows_at_once);

		vstrwq_s32(sums, vaddq_n_s32(vldrwq_z_s32(&key_sums[j], some), total));
		attention_mve_products(q, k, rows_at_once == 4 ? step : 0, depth, sums);
		k += rows_at_once * step;

		int32x4_t found = attention_mve_scaled(&by, sums);

		if (table != NULL) {
			const int32x4_t places = vaddq_n_s32(found, 128);

			found = vldrbq_gather_offset_s32(table, vreinterpretq_u32_s32(places));
		}
		vstrbq_p_s32(&scores[j], found, some);
	}
}

/* Adds a bias to a row of scores. */
static void attention_mve_add_bias(const struct tinyml_attention_s8_bias *bias,
				   const int8_t *values, int32_t count, int8_t *scores)
{
	const int32x4_t offset = vdupq_n_s32(bias->offset);
	const int32_t score_factor = bias->score_factor, value_factor = bias->value_factor;
	const int32_t shift = -bias->shift;

	for (; count > 0; count -= 4) {
		const mve_pred16_t some = vctp32q((uint32_t)count);
		int32x4_t sum = vmlaq_n_s32(offset, vldrbq_z_s32(scores, some), score_factor);

		sum = vshlq_r_s32(vmlaq_n_s32(sum, vldrbq_z_s32(values, some), value_factor),
				  shift);
		sum = vmaxq_s32(vminq_s32(sum, vdupq_n_s32(INT8_MAX)), vdupq_n_s32(INT8_MIN));
		vstrbq_p_s32(scores, sum, some);
		scores += 4;
		values += 4;
	}
}

static int32_t attention_mve_top(const int8_t *scores, int32_t count)
{
	int8_t top = INT8_MIN;

	for (; count > 0; count -= 16) {
		const mve_pred16_t some = vctp8q((uint32_t)count);

		top = vmaxvq_p_s8(top, vldrbq_z_s8(scores, some), some);
		scores += 16;
	}
	return top;
}

/* exp of four scores; 0 for those that are not there. */
static inline uint32x4_t attention_mve_exps(const uint32_t *exps, int32_t top, const int8_t *scores,
					    mve_pred16_t some)
{
	const int32x4_t below = vsubq_s32(vdupq_n_s32(top), vldrbq_z_s32(scores, some));

	return vldrwq_gather_shifted_offset_z_u32(exps, vreinterpretq_u32_s32(below), some);
}

/* Weights in place of scores, by table; returns their sum. */
static int32_t attention_mve_quick_weights(const struct tinyml_attention_s8 *p, int8_t *scores,
					   int32_t seen)
{
	const int32_t top = attention_mve_top(scores, seen);
	const uint32_t *exps = p->exps;
	uint32_t sum = 0;

	for (int32_t j = 0; j < seen; j += 4) {
		const mve_pred16_t some = vctp32q((uint32_t)(seen - j));

		sum = vaddvaq_u32(sum, attention_mve_exps(exps, top, &scores[j], some));
	}

	const struct attention_s8_row row = attention_s8_divided(p, top, sum);
	const uint32x4_t factor = vdupq_n_u32(row.factor);
	const uint32x4_t high = vdupq_n_u32((uint32_t)row.high);
	const uint32_t half = UINT32_C(1) << (row.shift - 33);
	const int32_t shift = 32 - row.shift, zero = p->weight_zero;
	uint32_t total = 0;

	for (int32_t j = 0; j < seen; j += 4) {
		const mve_pred16_t some = vctp32q((uint32_t)(seen - j));
		uint32x4_t value = attention_mve_exps(exps, top, &scores[j], some);

		value = vaddq_n_u32(vmulhq_u32(value, factor), half);
		value = vminq_u32(vshlq_r_u32(value, shift), high);
		total = vaddvaq_u32(total, value); /* 0 for those that are not there */
		vstrbq_p_s32(&scores[j], vaddq_n_s32(vreinterpretq_s32_u32(value), zero), some);
	}
	return (int32_t)total;
}

static int32_t attention_mve_slow_weights(const struct tinyml_attention_s8 *p, int8_t *scores,
					  int32_t seen)
{
	const struct attention_s8_row row = attention_s8_row_of(p, scores, seen);
	const int32_t zero = p->weight_zero;
	int32_t total = 0;

	for (int32_t j = 0; j < seen; j++) {
		const int32_t weight = attention_s8_weight(&row, scores[j]);

		total += weight;
		scores[j] = (int8_t)(weight + zero);
	}
	return total;
}

static int32_t attention_mve_weights(const struct tinyml_attention_s8 *p, const struct rows *rows,
				     int32_t seen)
{
	int8_t *scores = rows->scores;

	for (int32_t j = seen; j < p->at.keys; j++) {
		scores[j] = (int8_t)p->weight_zero;
	}
	return p->by_table && p->shift > 32 ? attention_mve_quick_weights(p, scores, seen)
					    : attention_mve_slow_weights(p, scores, seen);
}

/* The same with a mask: hidden keys have weights of zero, and so have all if none is seen. */
static int32_t attention_mve_masked_weights(const struct tinyml_attention_s8 *p,
					    const struct rows *rows,
					    const struct attention_s8_view *view)
{
	int8_t *scores = rows->scores;
	int32_t count = view->count, total;

	if (count == 0) {
		memset(scores, p->weight_zero, (size_t)p->at.keys);
		return 0;
	}
	attention_s8_compact(view, scores);
	total = attention_mve_weights(p, rows, count);
	for (int32_t j = view->seen - 1; j > count - 1; j--) {
		scores[j] =
			attention_s8_visible(view, j) ? scores[--count] : (int8_t)p->weight_zero;
	}
	return total;
}

static void attention_mve_values(const struct tinyml_attention_s8 *p, const struct rows *rows,
				 int8_t *y, int32_t total)
{
	const struct attention_s8_scale by = attention_s8_output_scale(p);
	const int32_t values = p->at.values, keys = p->at.keys, step = rows->keys;
	const int8_t *v = rows->values;

	for (int32_t d = 0, rows_at_once; d < values; d += rows_at_once) {
		int32_t sums[4];

		rows_at_once = values - d < 4 ? 1 : 4;

		const mve_pred16_t some = vctp32q((uint32_t)rows_at_once);

		vstrwq_s32(sums, vaddq_n_s32(vldrwq_z_s32(&rows->value_sums[d], some), total));
		attention_mve_products(rows->scores, v, rows_at_once == 4 ? step : 0, keys, sums);
		vstrbq_p_s32(&y[d], attention_mve_scaled(&by, sums), some);
		v += rows_at_once * step;
	}
}

ATTENTION_S8_INLINE void attention_mve_head(const struct tinyml_attention_s8 *p,
					    const struct tinyml_attention_mask *mask,
					    const struct tinyml_attention_s8_bias *bias,
					    const struct tinyml_attention_bytes *t,
					    const struct rows *rows, int32_t head)
{
	const struct tinyml_heads *at = &p->at;
	const int32_t *starts = &at->starts[4 * head];
	const int8_t *q = &t->q[starts[0]], *k = &t->k[starts[1]];
	int8_t *y = &t->y[starts[3]];

	attention_s8_transpose(at, &t->v[starts[2]], rows->values, rows->keys);
	for (int32_t j = at->keys; j < rows->keys; j++) {
		rows->key_sums[j] = 0;
	}
	for (int32_t j = 0; j < at->keys; j++) {
		rows->key_sums[j] = -p->q_zero * attention_mve_sum(&k[j * at->k_step], at->depth);
	}
	for (int32_t d = 0; d < at->values; d++) {
		rows->value_sums[d] = -p->weight_zero *
				      attention_mve_sum(&rows->values[d * rows->keys], at->keys);
	}
	for (int32_t i = 0; i < at->queries; i++) {
		const struct attention_s8_view view =
			attention_s8_look(at, mask, head, i, rows->blind);
		int32_t total;

		attention_mve_scores(p, rows, q, k, view.seen);
		if (bias != NULL) {
			attention_mve_add_bias(bias, attention_s8_values(bias, head, i), view.seen,
					       rows->scores);
		}
		total = mask == NULL ? attention_mve_weights(p, rows, view.seen)
				     : attention_mve_masked_weights(p, rows, &view);
		attention_mve_values(p, rows, y, -p->v_zero * total);
		q += at->q_step;
		y += at->y_step;
	}
}

ATTENTION_S8_INLINE void attention_mve_heads(const struct tinyml_attention_s8 *p,
					     const struct tinyml_attention_mask *mask,
					     const struct tinyml_attention_s8_bias *bias,
					     const struct tinyml_attention_bytes *t)
{
	struct rows rows = {.key_sums = t->scratch, .keys = (p->at.keys + 15) & ~15};

	rows.value_sums = &rows.key_sums[rows.keys];
	rows.scores = (int8_t *)&rows.value_sums[p->at.values];
	rows.values = rows.scores + rows.keys;
	rows.blind = (uint8_t *)&rows.values[p->at.values * rows.keys];
	for (int32_t h = 0; h < p->at.heads; h++) {
		attention_mve_head(p, mask, bias, t, &rows, h);
	}
}

#endif /* TINYML_ATTENTION_MVE_S8_H_ */
