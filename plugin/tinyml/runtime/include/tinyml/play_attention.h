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

/** struct tinyml_attention_mask: its bytes are an operand. */
struct tinyml_play_attention_mask {
	uint32_t starts; /* 0: all heads see the same keys */
	int32_t step;
	uint8_t inverted;
	uint8_t blind;
	uint8_t blind_keys;
	uint8_t unused;
};

/** struct tinyml_attention_s8_bias: its values are an operand. */
struct tinyml_play_attention_bias {
	uint32_t starts; /* 0: the same is added in all heads */
	int32_t step;
	int32_t score_factor;
	int32_t value_factor;
	int32_t offset;
	int32_t shift;
};

/** The same operands, then mask and bias, each of which may be nothing. */
struct tinyml_play_attention_biased_s8 {
	struct tinyml_play_attention_s8 all;
	struct tinyml_play_attention_mask mask;
	struct tinyml_play_attention_bias bias;
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

/** The same operands, then the bias, or nothing. */
struct tinyml_play_attention_biased_f32 {
	struct tinyml_play_attention_f32 all;
	uint32_t bias_starts;
	int32_t bias_step;
	float later;
	uint16_t later_replaces;
	uint16_t unused;
};

/* What the player calls, and what it checks. */

void tinyml_play_attention_s8(const struct tinyml_play *play);
void tinyml_play_attention_masked_s8(const struct tinyml_play *play);
void tinyml_play_attention_biased_s8(const struct tinyml_play *play);
void tinyml_play_attention_f32(const struct tinyml_play *play);
void tinyml_play_attention_biased_f32(const struct tinyml_play *play);
uint32_t tinyml_check_attention_s8(struct tinyml_check *check);
uint32_t tinyml_check_attention_masked_s8(struct tinyml_check *check);
uint32_t tinyml_check_attention_dsp_s8(struct tinyml_check *check);
uint32_t tinyml_check_attention_mve_s8(struct tinyml_check *check);
uint32_t tinyml_check_attention_biased_s8(struct tinyml_check *check);
uint32_t tinyml_check_attention_biased_dsp_s8(struct tinyml_check *check);
uint32_t tinyml_check_attention_biased_mve_s8(struct tinyml_check *check);
uint32_t tinyml_check_attention_f32(struct tinyml_check *check);
uint32_t tinyml_check_attention_biased_f32(struct tinyml_check *check);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_PLAY_ATTENTION_H_ */
