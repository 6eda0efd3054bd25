/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** The records of layers with int16 activations, whose zero points are 0. */

#ifndef TINYML_PLAY_INT16_H_
#define TINYML_PLAY_INT16_H_

#include <tinyml/conv.h>
#include <tinyml/play.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tinyml_play_conv_s16 {
	struct tinyml_window window;
	int16_t groups;
	int16_t out_min;
	int16_t out_max;
	uint32_t round_once;
	uint32_t weights;
	uint32_t bias; /* 0: none */
	uint32_t multiplier;
	uint32_t shift;
};

struct tinyml_play_dense_s16 {
	int32_t rows;
	int32_t inputs;
	int32_t outputs;
	uint32_t weights;
	uint32_t bias; /* 0: none */
	uint32_t multiplier;
	uint32_t shift;
	int16_t out_min;
	int16_t out_max;
	uint32_t round_once;
};

struct tinyml_play_softmax_s16 {
	int32_t rows;
	int32_t depth;
	int32_t multiplier;
	int32_t shift;
	uint32_t exp; /* 513 values each */
	uint32_t reciprocal;
};

/** Two slopes, for elements above and below zero. */
struct tinyml_play_leaky_s16 {
	uint32_t count;
	int32_t multiplier;
	int32_t below_multiplier;
	int32_t offset;
	int16_t shift;
	int16_t below_shift;
	int16_t out_min;
	int16_t out_max;
	uint32_t to_even;
};

/** The logistic function or tanh of (x * multiplier) >> shift. */
struct tinyml_play_sigmoid_s16 {
	uint32_t count;
	int32_t multiplier;
	uint32_t shift;
	uint32_t table; /* 256 values */
};

/** From one scale to another, between int8, uint8 and int16. */
struct tinyml_play_requantize {
	uint32_t count;
	int32_t multiplier; /* 0: the scales are the same */
	int16_t shift;
	int16_t in_zero;
	int16_t out_zero;
	uint16_t to_even;
	uint16_t from; /* enum tinyml_type */
	uint16_t to;
};

/* What the player calls, and what it checks. */

void tinyml_play_conv_s16(const struct tinyml_play *play);
void tinyml_play_dense_s16(const struct tinyml_play *play);
void tinyml_play_softmax_s16(const struct tinyml_play *play);
void tinyml_play_leaky_s16(const struct tinyml_play *play);
void tinyml_play_sigmoid_s16(const struct tinyml_play *play);
void tinyml_play_tanh_s16(const struct tinyml_play *play);
void tinyml_play_table_s16(const struct tinyml_play *play);
void tinyml_play_quantize_s16(const struct tinyml_play *play);
void tinyml_play_dequantize_s16(const struct tinyml_play *play);
void tinyml_play_requantize(const struct tinyml_play *play);
uint32_t tinyml_check_conv_s16(struct tinyml_check *check);
uint32_t tinyml_check_dense_s16(struct tinyml_check *check);
uint32_t tinyml_check_softmax_s16(struct tinyml_check *check);
uint32_t tinyml_check_leaky_s16(struct tinyml_check *check);
uint32_t tinyml_check_sigmoid_s16(struct tinyml_check *check);
uint32_t tinyml_check_table_s16(struct tinyml_check *check);
uint32_t tinyml_check_quantize_s16(struct tinyml_check *check);
uint32_t tinyml_check_dequantize_s16(struct tinyml_check *check);
uint32_t tinyml_check_requantize(struct tinyml_check *check);
void tinyml_play_max_pool_s16(const struct tinyml_play *play);
uint32_t tinyml_check_max_pool_s16(struct tinyml_check *check);
void tinyml_play_mean_any_s16(const struct tinyml_play *play);
uint32_t tinyml_check_mean_any_s16(struct tinyml_check *check);
void tinyml_play_reduce_s16(const struct tinyml_play *play);
uint32_t tinyml_check_reduce_s16(struct tinyml_check *check);
void tinyml_play_matmul_s16(const struct tinyml_play *play);
uint32_t tinyml_check_matmul_s16(struct tinyml_check *check);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_PLAY_INT16_H_ */
