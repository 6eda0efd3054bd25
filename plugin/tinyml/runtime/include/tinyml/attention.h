/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Attention: of each query a sum of values, weighted by the softmax of its products with the keys.
 *
 * Only a row of scores, or two, exists at a time.
 */

#ifndef TINYML_ATTENTION_H_
#define TINYML_ATTENTION_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Where rows are, in elements. Rows of a head follow each other at a distance of a step. */
struct tinyml_heads {
	int32_t heads;
	int32_t queries; /* rows of each head */
	int32_t keys;
	int32_t depth;         /* elements of a query and of a key */
	int32_t values;        /* elements of a value */
	const int32_t *starts; /* for each head: of its queries, keys, values and outputs */
	int32_t q_step;
	int32_t k_step;
	int32_t v_step;
	int32_t y_step;
	int32_t past; /* query i sees keys up to i + past; from the number of keys on, it sees all
		       */
};

struct tinyml_attention_s8 {
	struct tinyml_heads at;
	int32_t q_zero;
	int32_t k_zero;
	int32_t v_zero;
	int32_t score_multiplier; /* from sums of products to scores */
	int32_t score_shift;
	int32_t score_zero;
	const int8_t *table;  /* what each score becomes, from -128 on; NULL if it stays */
	const uint32_t *exps; /* 256, by how far a score is below the largest */
	uint64_t numerator;   /* by table: weight = exp * (numerator / sum) >> shift */
	int32_t shift;
	int32_t weight_zero;
	int32_t out_multiplier; /* from sums of products to outputs */
	int32_t out_shift;
	int32_t out_zero;
	bool by_table; /* else as tinyml_softmax_s8() */
	bool once;     /* one rounding, halves to even; else two, as TensorFlow Lite */
};

/** What a query computes that sees no key. */
enum tinyml_attention_blind {
	TINYML_ATTENTION_ZEROS,
	TINYML_ATTENTION_MEAN, /* of all values */
	TINYML_ATTENTION_ALL,  /* as if it saw all keys */
};

/** With which keys it does, as masks and the limit of later keys hide by numbers that may add up.
 */
enum tinyml_attention_blind_keys {
	TINYML_ATTENTION_EVERY,
	TINYML_ATTENTION_EARLIER, /* those that `past` leaves it */
	TINYML_ATTENTION_ONCE,    /* those that are not both later and hidden */
};

/** Which keys a query sees of those that `past` leaves it. */
struct tinyml_attention_mask {
	const void *visible;   /* bytes: whether the query sees the key */
	const int32_t *starts; /* for each head; NULL: all heads see the same keys */
	int32_t step;          /* from one query to the next; 0: all of them see the same keys */
	bool inverted;         /* bytes say whether the key is hidden */
	uint8_t blind;         /* enum tinyml_attention_blind */
	uint8_t blind_keys;    /* enum tinyml_attention_blind_keys; ONCE needs working memory */
};

/** What is added to scores before a mask: (score * score_factor + value * value_factor + offset)
 * >> shift, limited to int8.
 */
struct tinyml_attention_s8_bias {
	const int8_t *values;
	const int32_t *starts; /* for each head; NULL: the same is added in all heads */
	int32_t step; /* from one query to the next; 0: the same is added for all of them */
	int32_t score_factor;
	int32_t value_factor;
	int32_t offset;
	int32_t shift;
};

struct tinyml_attention_f32 {
	struct tinyml_heads at;
	float scale;
	float softcap;              /* 0: none */
	const int32_t *mask_starts; /* for each head; NULL without a mask */
	int32_t mask_step;
	bool empty;    /* a query all of whose scores are -inf gives zeros */
	bool inverted; /* keys are visible where the mask is false */
	float low;     /* the score of a key that is not visible */
};

/** What is added to scores before a mask, and to those of later keys after it. */
struct tinyml_attention_bias {
	const float *values;   /* NULL: nothing is added before */
	const int32_t *starts; /* for each head */
	int32_t step;          /* from one query to the next */
	float later;         /* later keys count where no score is above a half of this; 0: never */
	bool later_replaces; /* it takes the place of their scores */
};

/** Queries, keys, values, outputs and working memory. */
struct tinyml_attention_bytes {
	const int8_t *q;
	const int8_t *k;
	const int8_t *v;
	int8_t *y;
	void *scratch;
};

/** The mask is added to the scores, or hides keys where it is false; one of both, or none. */
struct tinyml_attention_floats {
	const float *q;
	const float *k;
	const float *v;
	const float *mask;
	const void *visible; /* bool */
	const int32_t *past; /* at run time, in place of that of the heads; or NULL */
	float *y;
	float *scratch; /* a number for each key */
};

void tinyml_attention_s8(const struct tinyml_attention_s8 *p,
			 const struct tinyml_attention_bytes *t);
void tinyml_attention_masked_s8(const struct tinyml_attention_s8 *p,
				const struct tinyml_attention_mask *mask,
				const struct tinyml_attention_bytes *t);
/** `mask`: NULL without one. */
void tinyml_attention_biased_s8(const struct tinyml_attention_s8 *p,
				const struct tinyml_attention_mask *mask,
				const struct tinyml_attention_s8_bias *bias,
				const struct tinyml_attention_bytes *t);
void tinyml_attention_dsp_s8(const struct tinyml_attention_s8 *p,
			     const struct tinyml_attention_bytes *t);
void tinyml_attention_masked_dsp_s8(const struct tinyml_attention_s8 *p,
				    const struct tinyml_attention_mask *mask,
				    const struct tinyml_attention_bytes *t);
void tinyml_attention_biased_dsp_s8(const struct tinyml_attention_s8 *p,
				    const struct tinyml_attention_mask *mask,
				    const struct tinyml_attention_s8_bias *bias,
				    const struct tinyml_attention_bytes *t);
void tinyml_attention_mve_s8(const struct tinyml_attention_s8 *p,
			     const struct tinyml_attention_bytes *t);
void tinyml_attention_masked_mve_s8(const struct tinyml_attention_s8 *p,
				    const struct tinyml_attention_mask *mask,
				    const struct tinyml_attention_bytes *t);
void tinyml_attention_biased_mve_s8(const struct tinyml_attention_s8 *p,
				    const struct tinyml_attention_mask *mask,
				    const struct tinyml_attention_s8_bias *bias,
				    const struct tinyml_attention_bytes *t);
void tinyml_attention_f32(const struct tinyml_attention_f32 *p,
			  const struct tinyml_attention_floats *t);
void tinyml_attention_biased_f32(const struct tinyml_attention_f32 *p,
				 const struct tinyml_attention_bias *bias,
				 const struct tinyml_attention_floats *t);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_ATTENTION_H_ */
