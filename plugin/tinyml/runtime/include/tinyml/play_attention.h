/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** The records of attention. */

#ifndef TINYML_PLAY_ATTENTION_H_
#define TINYML_PLAY_ATTENTION_H_

#include <tinyml/play.h>

#ifdef __cplusplus
extern "C" {
#endif

/** struct tinyml_heads */
struct tinyml_play_heads {
	int32_t heads;
	int32_t queries;
	int32_t keys;
	int32_t depth;
	int32_t values;
	uint32_t starts;
	int32_t q_step;
	int32_t k_step;
	int32_t v_step;
	int32_t y_step;
	int32_t past;
};

/** Operands: q, k, v, y, scratch. */
struct tinyml_play_attention_s8 {
	struct tinyml_play_heads at;
	int32_t q_zero;
	int32_t k_zero;
	int32_t v_zero;
	int32_t score_multiplier;
	int32_t score_shift;
	int32_t score_zero;
	uint32_t table; /* 0: none */
	uint32_t exps;
	uint32_t numerator;
	uint32_t numerator_high;
	int32_t shift;
	int32_t weight_zero;
	int32_t out_multiplier;
	int32_t out_shift;
	int32_t out_zero;
	uint16_t by_table;
	uint16_t once;
};

/** The same operands. */
struct tinyml_play_attention_masked_s8 {
	struct tinyml_play_attention_s8 all;
	uint32_t visible; /* a byte for each query and key */
};

/** Operands: q, k, v, mask, y, scratch. */
struct tinyml_play_attention_f32 {
	struct tinyml_play_heads at;
	float scale;
	float softcap;
	uint32_t mask_starts; /* 0: without a mask */
	int32_t mask_step;
	float low;
	uint16_t empty;
	uint16_t hides; /* the mask is bool: whether a key is (1) visible, (2) hidden */
};

/* What the player calls, and what it checks. */

void tinyml_play_attention_s8(const struct tinyml_play *play);
void tinyml_play_attention_masked_s8(const struct tinyml_play *play);
void tinyml_play_attention_f32(const struct tinyml_play *play);
uint32_t tinyml_check_attention_s8(struct tinyml_check *check);
uint32_t tinyml_check_attention_masked_s8(struct tinyml_check *check);
uint32_t tinyml_check_attention_dsp_s8(struct tinyml_check *check);
uint32_t tinyml_check_attention_mve_s8(struct tinyml_check *check);
uint32_t tinyml_check_attention_f32(struct tinyml_check *check);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_PLAY_ATTENTION_H_ */
