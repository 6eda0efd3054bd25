/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Shared by the kernels of attention on int8: from sums to scores, from scores to weights, from
 * sums to outputs. Weights are numbers from 0 to 255, without their zero point.
 */

#ifndef TINYML_ATTENTION_S8_H_
#define TINYML_ATTENTION_S8_H_

#include <stddef.h>
#include <stdint.h>

#include <tinyml/attention.h>
#include <tinyml/fixed_point.h>
#include <tinyml/tinyml.h>
#include <tinyml/transcendental.h>

#define ATTENTION_S8_INLINE static inline __attribute__((always_inline))

/* How many keys a query sees. */
static inline int32_t attention_s8_seen(const struct tinyml_heads *at, int32_t query)
{
	return at->past < at->keys - query - 1 ? query + at->past + 1 : at->keys;
}

/* The keys that a query sees: `seen` of them, less those that `hidden` names. */
struct attention_s8_view {
	const uint8_t *row; /* a byte for each key; NULL: none is hidden */
	bool hidden;        /* what the byte of a hidden key says */
	bool level;         /* all scores are the same */
	int32_t seen;
	int32_t count; /* those that are not hidden */
};

ATTENTION_S8_INLINE bool attention_s8_visible(const struct attention_s8_view *view, int32_t key)
{
	return view->row == NULL || (view->row[key] != 0u) != view->hidden;
}

/* Which keys are not both later and hidden, as bytes; returns how many. */
__attribute__((noinline)) static int32_t
attention_s8_once(uint8_t *row, const uint8_t *bytes, bool hidden, int32_t earlier, int32_t keys)
{
	int32_t count = 0;

	for (int32_t j = 0; j < keys; j++) {
		const bool visible = j < earlier || (bytes[j] != 0u) != hidden;

		row[j] = visible ? 1u : 0u;
		count += visible ? 1 : 0;
	}
	return count;
}

/* What query `query` of a head sees; without a mask all that `past` leaves it. Hidden keys at the
 * end are not seen at all.
 */
ATTENTION_S8_INLINE struct attention_s8_view
attention_s8_look(const struct tinyml_heads *at, const struct tinyml_attention_mask *mask,
		  int32_t head, int32_t query, uint8_t *blind_row)
{
	const int32_t seen = attention_s8_seen(at, query);
	struct attention_s8_view view = {.seen = seen, .count = seen};

	if (mask != NULL) {
		const int32_t start = mask->starts != NULL ? mask->starts[head] : 0;
		int32_t end = 0, count = 0;

		view.row = (const uint8_t *)mask->visible + start + query * mask->step;
		view.hidden = mask->inverted;
		for (int32_t j = 0; j < seen; j++) {
			if (attention_s8_visible(&view, j)) {
				end = j + 1;
				count++;
			}
		}
		if (count == 0 && mask->blind != TINYML_ATTENTION_ZEROS) {
			end = mask->blind_keys == TINYML_ATTENTION_EARLIER ? seen : at->keys;
			count = end;
			view.level = mask->blind == TINYML_ATTENTION_MEAN;
			if (mask->blind_keys == TINYML_ATTENTION_ONCE) {
				count = attention_s8_once(blind_row, view.row, view.hidden, seen,
							  end);
				view.row = blind_row;
				view.hidden = false;
			}
		}
		view.row = count == end ? NULL : view.row;
		view.seen = end;
		view.count = count;
	}
	return view;
}

/* The scores of keys that are not hidden come first, and all are the same for a level view. */
ATTENTION_S8_INLINE void attention_s8_compact(const struct attention_s8_view *view, int8_t *scores)
{
	if (view->row != NULL) {
		int32_t count = 0;

		for (int32_t j = 0; j < view->seen; j++) {
			if (attention_s8_visible(view, j)) {
				scores[count++] = view->level ? 0 : scores[j];
			}
		}
	} else if (view->level) {
		for (int32_t j = 0; j < view->seen; j++) {
			scores[j] = 0;
		}
	}
}

/* From sums to bytes. A copy of what the parameters say, because compilers expect every byte that
 * is stored to change them.
 */
struct attention_s8_scale {
	int32_t multiplier;
	int32_t shift;
	int32_t zero;
	int32_t places; /* to the right, after the high word; 0 if the slow way is needed */
	bool once;
};

static inline struct attention_s8_scale attention_s8_scale_of(int32_t multiplier, int32_t shift,
							      int32_t zero, bool once)
{
	const bool quick = once && shift <= -3 && shift >= -30;

	return (struct attention_s8_scale){
		.multiplier = multiplier,
		.shift = shift,
		.zero = zero,
		.places = quick ? -1 - shift : 0,
		.once = once,
	};
}

/* Seldom called, and long. */
__attribute__((noinline)) static int32_t attention_s8_slowly(const struct attention_s8_scale *by,
							     int32_t sum)
{
	const int32_t scaled = by->once ? tinyml_rescale_to_even(sum, by->multiplier, by->shift)
					: tinyml_rescale(sum, by->multiplier, by->shift);

	return tinyml_saturate_s8(scaled + by->zero);
}

/* The high word of the product decides, unless the rest is so close to a half that the sum's own
 * rounding counts: within 2^32 of it.
 */
static inline int32_t attention_s8_scaled(const struct attention_s8_scale *by, int32_t sum)
{
	if (by->places > 0) {
		const int32_t high = (int32_t)(tinyml_wide_product(sum, by->multiplier) >> 32) +
				     (INT32_C(1) << (by->places - 1));
		const int32_t mask = (INT32_C(1) << by->places) - 1;

		if (((high + 1) & mask) > 1) {
			return tinyml_saturate_s8((high >> by->places) + by->zero);
		}
	}
	return attention_s8_slowly(by, sum);
}

static inline struct attention_s8_scale
attention_s8_score_scale(const struct tinyml_attention_s8 *p)
{
	return attention_s8_scale_of(p->score_multiplier, p->score_shift, p->score_zero, p->once);
}

static inline struct attention_s8_scale
attention_s8_output_scale(const struct tinyml_attention_s8 *p)
{
	return attention_s8_scale_of(p->out_multiplier, p->out_shift, p->out_zero, p->once);
}

/* The score of a sum of products, as softmax reads it. */
static inline int8_t attention_s8_score(const struct attention_s8_scale *by, const int8_t *table,
					int32_t sum)
{
	const int32_t score = attention_s8_scaled(by, sum);

	return table != NULL ? table[score + 128] : (int8_t)score;
}

/* What is added to the scores of a query, for each key. */
ATTENTION_S8_INLINE const int8_t *attention_s8_values(const struct tinyml_attention_s8_bias *bias,
						      int32_t head, int32_t query)
{
	const int32_t start = bias->starts != NULL ? bias->starts[head] : 0;

	return &bias->values[start + query * bias->step];
}

static inline int32_t attention_s8_sum(const struct tinyml_attention_s8_bias *by, int32_t score,
				       int32_t value)
{
	const int32_t sum = score * by->score_factor + value * by->value_factor + by->offset;

	return tinyml_saturate_s8(sum >> by->shift);
}

static inline int32_t attention_s8_top(const int8_t *scores, int32_t count)
{
	int32_t top = INT8_MIN;

	for (int32_t i = 0; i < count; i++) {
		top = scores[i] > top ? scores[i] : top;
	}
	return top;
}

/* How exponentials of a row become weights. */
struct attention_s8_row {
	const uint32_t *exps; /* by how far a score is below the largest */
	int32_t shift;
	int32_t high; /* the largest weight */
	uint32_t factor;
	int32_t top;
	bool by_table;
};

static inline struct attention_s8_row attention_s8_divided(const struct tinyml_attention_s8 *p,
							   int32_t top, uint32_t sum)
{
	struct attention_s8_row row = {
		.exps = p->exps,
		.top = top,
		.high = INT8_MAX - p->weight_zero,
		.by_table = p->by_table,
	};

	TINYML_ASSERT(sum > 0); /* the largest score contributes exp(0) */
	if (p->by_table) {
		row.factor = (uint32_t)((p->numerator + sum / 2) / sum);
		row.shift = p->shift;
	} else {
		const int32_t zeros = tinyml_leading_zeros(sum);
		const uint32_t rest = (sum << zeros) - (UINT32_C(1) << 31);

		row.factor = (uint32_t)tinyml_one_over_one_plus((int32_t)rest);
		row.shift = 12 - zeros + 31 - 8;
	}
	return row;
}

static inline struct attention_s8_row attention_s8_row_of(const struct tinyml_attention_s8 *p,
							  const int8_t *scores, int32_t count)
{
	const int32_t top = attention_s8_top(scores, count);
	const uint32_t *exps = p->exps;
	uint32_t sum = 0;

	if (p->by_table) {
		for (int32_t i = 0; i < count; i++) {
			sum += exps[top - scores[i]];
		}
	} else { /* Q12.19 */
		for (int32_t i = 0; i < count; i++) {
			const int32_t exp = (int32_t)exps[top - scores[i]];

			sum += (uint32_t)tinyml_rounding_shift_right(exp, 12);
		}
	}
	return attention_s8_divided(p, top, sum);
}

static inline int32_t attention_s8_weight(const struct attention_s8_row *row, int32_t score)
{
	const uint32_t exp = row->exps[row->top - score];
	int32_t value;

	if (row->by_table && row->shift > 32) {
		const uint32_t high = (uint32_t)(((uint64_t)exp * row->factor) >> 32);

		value = (int32_t)((high + (UINT32_C(1) << (row->shift - 33))) >> (row->shift - 32));
	} else if (row->by_table) {
		const uint64_t half = UINT64_C(1) << (row->shift - 1);

		value = (int32_t)(((uint64_t)exp * row->factor + half) >> row->shift);
	} else {
		value = tinyml_doubling_high_multiply((int32_t)exp, (int32_t)row->factor);
		/* 512 elements as large as the largest: none has as much as half a step */
		value = row->shift > 31 ? 0 : tinyml_rounding_shift_right(value, row->shift);
	}
	return value > row->high ? row->high : value;
}

/* The values of a head, element by element: `padded` keys each, of which the last ones are 0. */
static inline void attention_s8_transpose(const struct tinyml_heads *at, const int8_t *v,
					  int8_t *to, int32_t padded)
{
	const int32_t values = at->values, keys = at->keys, step = at->v_step;

	for (int32_t d = 0; d < values; d++) {
		const int8_t *from = &v[d];

		for (const int8_t *end = to + keys; to != end; from += step) {
			*to++ = *from;
		}
		for (int32_t j = keys; j < padded; j++) {
			*to++ = 0;
		}
	}
}

#endif /* TINYML_ATTENTION_S8_H_ */
