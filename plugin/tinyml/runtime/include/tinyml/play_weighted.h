/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** The records of layers with weights. */

#ifndef TINYML_PLAY_WEIGHTED_H_
#define TINYML_PLAY_WEIGHTED_H_

#include <tinyml/conv.h>
#include <tinyml/play_moves.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tinyml_play_conv_stream_s8 {
	struct tinyml_window window;
	int16_t groups;
	int16_t in_zero;
	int16_t weight_zero;
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	uint8_t round_once;
	uint8_t from_the_end;
	uint32_t filters;
};

struct tinyml_play_conv_mve_s8 {
	struct tinyml_window window;
	int16_t in_zero;
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	uint8_t round_once;
	uint8_t from_the_end;
	uint32_t weights;
	uint32_t channels;
};

struct tinyml_play_conv_rvv_s8 {
	struct tinyml_window window;
	int16_t in_zero;
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	uint8_t round_once;
	uint8_t from_the_end;
	uint32_t weights;
	uint32_t bias;
	uint32_t multiplier;
	uint32_t shift;
};

struct tinyml_play_depthwise_conv_s8 {
	struct tinyml_window window;
	int16_t in_zero;
	int16_t weight_zero;
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	uint8_t round_once;
	uint8_t transposed;
	uint32_t weights;
	uint32_t bias;
	uint32_t multiplier;
	uint32_t shift;
};

struct tinyml_play_depthwise_conv_mve_s8 {
	struct tinyml_window window;
	int16_t in_zero;
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	uint8_t round_once;
	uint8_t unused;
	uint32_t weights;
	uint32_t bias;
	uint32_t multiplier;
	uint32_t shift;
};

struct tinyml_play_dense_stream_s8 {
	int32_t rows;
	int32_t inputs;
	int32_t outputs;
	uint32_t filters;
	int16_t weight_zero;
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	uint8_t round_once;
	uint8_t unused[3];
};

struct tinyml_play_dense_mve_s8 {
	int32_t rows;
	int32_t inputs;
	int32_t outputs;
	uint32_t weights;
	uint32_t bias;
	uint32_t multiplier;
	uint32_t shift;
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	uint8_t round_once;
	uint8_t unused;
};

/** Positions of 0 stand for NULL. */
struct tinyml_play_conv_f32 {
	struct tinyml_window window;
	int16_t groups;
	uint32_t from_the_end;
	float out_min;
	float out_max;
	uint32_t weights;
	uint32_t bias;
};

/** Outputs that are not neighbours; padding may be negative. */
struct tinyml_play_conv_apart_f32 {
	struct tinyml_play_conv_f32 conv;
	int32_t step;
	int32_t line;
};

struct tinyml_play_dense_f32 {
	int32_t rows;
	int32_t inputs;
	int32_t outputs;
	uint32_t weights;
	uint32_t bias;
	float out_min;
	float out_max;
};

/** Weights of one byte each, and a scale for each output. */
struct tinyml_play_conv_f32_s8 {
	struct tinyml_window window;
	int16_t groups;
	uint32_t from_the_end;
	float out_min;
	float out_max;
	uint32_t weights;
	uint32_t scales;
	uint32_t bias; /* 0: none */
};

struct tinyml_play_dense_f32_s8 {
	int32_t rows;
	int32_t inputs;
	int32_t outputs;
	uint32_t weights;
	uint32_t scales;
	uint32_t bias; /* 0: none */
	float out_min;
	float out_max;
};

/** Filters on int8 whose sums become float. */
struct tinyml_play_filters_to_f32 {
	uint32_t weights;
	uint32_t zeros;
	uint32_t scales;
	uint32_t bias; /* 0: none */
	float out_min;
	float out_max;
	int32_t inputs;
	int32_t weight_zero;
};

struct tinyml_play_dense_s8_to_f32 {
	int32_t rows;
	int32_t outputs;
	struct tinyml_play_filters_to_f32 filters;
};

struct tinyml_play_conv_s8_to_f32 {
	struct tinyml_window window;
	int16_t groups;
	int16_t in_zero;
	int16_t unused;
	struct tinyml_play_filters_to_f32 filters;
};

/** Products of two matrices, both computed. Loops over the output; steps in elements. */
struct tinyml_play_matmul_f32 {
	uint32_t extents[TINYML_PLAY_LOOPS];
	int32_t a_steps[TINYML_PLAY_LOOPS];
	int32_t b_steps[TINYML_PLAY_LOOPS];
	uint32_t depth;  /* products in a sum: neighbours of a */
	uint32_t b_step; /* from one element of b to the next one of the sum */
};

struct tinyml_play_matmul_s8 {
	uint32_t extents[TINYML_PLAY_LOOPS];
	int32_t a_steps[TINYML_PLAY_LOOPS];
	int32_t b_steps[TINYML_PLAY_LOOPS];
	uint32_t depth;
	uint32_t b_step;
	int32_t multiplier;
	int16_t shift;
	int16_t a_zero;
	int16_t b_zero;
	int16_t out_zero;
	uint32_t to_even; /* how rescaling rounds */
};

/** Every input element spreads a filter over the output: o = i * stride + k * dilation - pad. */
struct tinyml_play_conv_transpose_f32 {
	struct tinyml_window window;
	int16_t groups;
	float out_min;
	float out_max;
	uint32_t weights; /* (out_c, kernel_h, kernel_w, in_c / groups) */
	uint32_t bias;    /* 0: none */
};

/** The same for int8, and for int16, whose zero points are 0 and whose bias is int64. */
struct tinyml_play_conv_transpose_s8 {
	struct tinyml_window window;
	int16_t groups;
	int16_t in_zero;
	int16_t weight_zero;
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	uint16_t round_once;
	uint32_t weights;
	uint32_t bias;       /* 0: none */
	uint32_t multiplier; /* one for each output channel, as shift */
	uint32_t shift;
};

/* What the player calls, and what it checks. */

void tinyml_play_conv_stream_s8(const struct tinyml_play *play);
uint32_t tinyml_check_conv_s8(struct tinyml_check *check);
uint32_t tinyml_check_conv_wide_s8(struct tinyml_check *check);
uint32_t tinyml_check_conv_halves_s8(struct tinyml_check *check);
uint32_t tinyml_check_conv_dsp_s8(struct tinyml_check *check);
uint32_t tinyml_check_conv_pairs_s8(struct tinyml_check *check);
void tinyml_play_depthwise_conv_s8(const struct tinyml_play *play);
uint32_t tinyml_check_depthwise_any_s8(struct tinyml_check *check);
uint32_t tinyml_check_depthwise_3x3_s8(struct tinyml_check *check);
uint32_t tinyml_check_depthwise_dsp_any_s8(struct tinyml_check *check);
uint32_t tinyml_check_depthwise_dsp_two_words_s8(struct tinyml_check *check);
uint32_t tinyml_check_depthwise_dsp_3x3_s8(struct tinyml_check *check);
uint32_t tinyml_check_depthwise_dsp_3x3_by_1_s8(struct tinyml_check *check);
uint32_t tinyml_check_depthwise_dsp_3x3_by_2_s8(struct tinyml_check *check);
uint32_t tinyml_check_depthwise_halves_s8(struct tinyml_check *check);
uint32_t tinyml_check_depthwise_halves_3x3_s8(struct tinyml_check *check);
void tinyml_play_depthwise_nibbles_halves_s8(const struct tinyml_play *play);
void tinyml_play_depthwise_whole_s8(const struct tinyml_play *play);
uint32_t tinyml_check_depthwise_whole_s8(struct tinyml_check *check);
void tinyml_play_dense_stream_s8(const struct tinyml_play *play);
uint32_t tinyml_check_dense_s8(struct tinyml_check *check);
uint32_t tinyml_check_dense_pairs_s8(struct tinyml_check *check);
uint32_t tinyml_check_dense_sixes_s8(struct tinyml_check *check);
void tinyml_play_conv_mve_s8(const struct tinyml_play *play);
void tinyml_play_conv_rvv_s8(const struct tinyml_play *play);
void tinyml_play_depthwise_conv_mve_s8(const struct tinyml_play *play);
void tinyml_play_dense_mve_s8(const struct tinyml_play *play);
void tinyml_play_dense_rvv_s8(const struct tinyml_play *play);
uint32_t tinyml_check_conv_mve_once_s8(struct tinyml_check *check);
uint32_t tinyml_check_conv_mve_twice_s8(struct tinyml_check *check);
uint32_t tinyml_check_conv_mve_relu_s8(struct tinyml_check *check);
uint32_t tinyml_check_conv_rvv_s8(struct tinyml_check *check);
uint32_t tinyml_check_depthwise_mve_3x3_once_s8(struct tinyml_check *check);
uint32_t tinyml_check_depthwise_mve_3x3_twice_s8(struct tinyml_check *check);
uint32_t tinyml_check_depthwise_mve_any_once_s8(struct tinyml_check *check);
uint32_t tinyml_check_depthwise_mve_any_twice_s8(struct tinyml_check *check);
uint32_t tinyml_check_depthwise_conv_rvv_s8(struct tinyml_check *check);
uint32_t tinyml_check_dense_mve_once_s8(struct tinyml_check *check);
uint32_t tinyml_check_dense_mve_twice_s8(struct tinyml_check *check);
uint32_t tinyml_check_dense_rvv_s8(struct tinyml_check *check);
void tinyml_play_conv_f32(const struct tinyml_play *play);
uint32_t tinyml_check_conv_f32(struct tinyml_check *check);
void tinyml_play_conv_apart_f32(const struct tinyml_play *play);
uint32_t tinyml_check_conv_apart_f32(struct tinyml_check *check);
void tinyml_play_depthwise_conv_f32(const struct tinyml_play *play);
uint32_t tinyml_check_depthwise_conv_f32(struct tinyml_check *check);
void tinyml_play_dense_f32(const struct tinyml_play *play);
uint32_t tinyml_check_dense_f32(struct tinyml_check *check);
void tinyml_play_conv_f32_f16(const struct tinyml_play *play);
uint32_t tinyml_check_conv_f32_f16(struct tinyml_check *check);
void tinyml_play_conv_apart_f32_f16(const struct tinyml_play *play);
uint32_t tinyml_check_conv_apart_f32_f16(struct tinyml_check *check);
void tinyml_play_depthwise_conv_f32_f16(const struct tinyml_play *play);
uint32_t tinyml_check_depthwise_conv_f32_f16(struct tinyml_check *check);
void tinyml_play_dense_f32_f16(const struct tinyml_play *play);
uint32_t tinyml_check_dense_f32_f16(struct tinyml_check *check);
void tinyml_play_conv_f32_s8(const struct tinyml_play *play);
void tinyml_play_dense_f32_s8(const struct tinyml_play *play);
void tinyml_play_dense_s8_to_f32(const struct tinyml_play *play);
void tinyml_play_conv_s8_to_f32(const struct tinyml_play *play);
void tinyml_play_matmul_f32(const struct tinyml_play *play);
void tinyml_play_matmul_s8(const struct tinyml_play *play);
uint32_t tinyml_check_conv_f32_s8(struct tinyml_check *check);
uint32_t tinyml_check_dense_f32_s8(struct tinyml_check *check);
uint32_t tinyml_check_dense_s8_to_f32(struct tinyml_check *check);
uint32_t tinyml_check_conv_s8_to_f32(struct tinyml_check *check);
uint32_t tinyml_check_matmul_f32(struct tinyml_check *check);
uint32_t tinyml_check_matmul_s8(struct tinyml_check *check);
void tinyml_play_conv_transpose_f32(const struct tinyml_play *play);
void tinyml_play_conv_transpose_s8(const struct tinyml_play *play);
void tinyml_play_conv_transpose_s16(const struct tinyml_play *play);
void tinyml_play_matmul_s32(const struct tinyml_play *play);
uint32_t tinyml_check_conv_transpose_f32(struct tinyml_check *check);
uint32_t tinyml_check_conv_transpose_s8(struct tinyml_check *check);
uint32_t tinyml_check_conv_transpose_s16(struct tinyml_check *check);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_PLAY_WEIGHTED_H_ */
