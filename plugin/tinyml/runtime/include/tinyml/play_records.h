/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** The records of calls: the structures of kernels with positions in place of pointers. */

#ifndef TINYML_PLAY_RECORDS_H_
#define TINYML_PLAY_RECORDS_H_

#include <tinyml/conv.h>
#include <tinyml/play.h>

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

/** A block of bytes, or `rows` of them at other distances. */
struct tinyml_play_copy {
	uint32_t rows;
	uint32_t bytes;
	uint32_t from_step;
	uint32_t to_step;
};

struct tinyml_play_fill {
	uint32_t bytes;
	uint32_t value; /* of each */
};

/** For each element the entry of a table of 256 bytes. */
struct tinyml_play_lookup {
	uint32_t count;
	uint32_t table;
};

#define TINYML_PLAY_LOOPS 4

/** Blocks of bytes, or elements of `unit` bytes if a block is one: loops inside one another, the
 * last one innermost, with steps in bytes. */
struct tinyml_play_move {
	uint32_t extents[TINYML_PLAY_LOOPS];
	int32_t from_steps[TINYML_PLAY_LOOPS];
	int32_t to_steps[TINYML_PLAY_LOOPS];
	uint32_t from_start;
	uint32_t to_start;
	uint32_t bytes;
	uint32_t unit; /* 1, 2 or 4; steps are multiples of it */
};

/** One value at many places. */
struct tinyml_play_fill_loops {
	uint32_t extents[TINYML_PLAY_LOOPS];
	int32_t steps[TINYML_PLAY_LOOPS];
	uint32_t start;
	uint32_t bytes; /* at most 4 */
	uint32_t value; /* its first bytes */
};

/** A function of two operands that move with their own steps, in elements; the output's are those
 * of its loops. What the numbers mean depends on the function. */
struct tinyml_play_binary_s8 {
	uint32_t extents[TINYML_PLAY_LOOPS];
	int32_t a_steps[TINYML_PLAY_LOOPS];
	int32_t b_steps[TINYML_PLAY_LOOPS];
	int32_t a_factor;
	int32_t b_factor;
	int32_t y_factor;
	int16_t a_zero;
	int16_t b_zero;
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	int8_t a_shift;
	int8_t b_shift;
	int8_t y_shift;
	uint8_t headroom; /* bits */
	int16_t sign;     /* of the second operand: 1 or -1 */
};

/** How quotients of integers are rounded, which halves go where. */
enum tinyml_play_halves {
	TINYML_PLAY_HALVES_AWAY, /* from zero */
	TINYML_PLAY_HALVES_UP,
	TINYML_PLAY_HALVES_EVEN,
};

/** Means of the elements of each window that are inside the input. */
struct tinyml_play_mean_any_s8 {
	struct tinyml_window window;
	int16_t zero;
	int16_t out_min;
	int16_t out_max;
	uint16_t halves; /* enum tinyml_play_halves */
	uint16_t unused;
};

struct tinyml_play_max_pool_s8 {
	struct tinyml_window window;
	int16_t out_min;
	int16_t out_max;
	int16_t unused;
};

/** Adds positions to sums, one for each channel. */
struct tinyml_play_sums {
	uint32_t positions;
	uint32_t channels;
};

/** (sum * factor + offset) >> shift, limited. */
struct tinyml_play_means {
	uint32_t count;
	int32_t factor;
	int32_t offset;
	int16_t shift;
	int16_t out_min;
	int16_t out_max;
	int16_t unused;
};

enum tinyml_play_rounding {
	TINYML_PLAY_TWICE,   /* tinyml_rescale() */
	TINYML_PLAY_TO_EVEN, /* tinyml_rescale_to_even() */
	TINYML_PLAY_AWAY,    /* tinyml_rescale_away() */
};

/** Sums along axes: loops over what stays, and inside them over what is added. Steps in elements.
 */
struct tinyml_play_reduce_s8 {
	uint32_t extents[TINYML_PLAY_LOOPS];
	int32_t steps[TINYML_PLAY_LOOPS];
	uint32_t inner_extents[TINYML_PLAY_LOOPS];
	int32_t inner_steps[TINYML_PLAY_LOOPS];
	int32_t offset; /* added to a sum */
	int32_t multiplier;
	int16_t shift;
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	uint32_t rounding; /* enum tinyml_play_rounding */
};

struct tinyml_play_quantize {
	uint32_t count;
	float scale;
	int16_t zero;
	int16_t out_min;
	int16_t out_max;
	uint16_t to_even; /* halves; else away from zero */
};

struct tinyml_play_dequantize {
	uint32_t count;
	float scale;
	int32_t zero;
};

/** Blocks of bytes, whose offsets along an axis are in a table of words, or multiples of a step. */
struct tinyml_play_take {
	uint32_t extents[TINYML_PLAY_LOOPS];
	uint32_t steps[TINYML_PLAY_LOOPS];  /* or the largest offset in the table */
	uint32_t tables[TINYML_PLAY_LOOPS]; /* 0: none */
	uint32_t start;
	uint32_t bytes;
};

/** Rows of `depth` elements, `step` apart: exp * (numerator / sum) >> shift, plus zero. */
struct tinyml_play_softmax_table {
	uint32_t rows;
	uint32_t columns; /* rows that begin at neighbouring elements */
	uint32_t row_step;
	uint32_t depth;
	uint32_t step;
	uint32_t exps; /* `size` words */
	uint32_t size;
	uint32_t numerator;
	uint32_t numerator_high;
	uint32_t shift;
	int16_t zero;
	int16_t out_max;
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

struct tinyml_play_dense_f32 {
	int32_t rows;
	int32_t inputs;
	int32_t outputs;
	uint32_t weights;
	uint32_t bias;
	float out_min;
	float out_max;
};

/** As struct tinyml_play_binary_s8. */
struct tinyml_play_binary_f32 {
	uint32_t extents[TINYML_PLAY_LOOPS];
	int32_t a_steps[TINYML_PLAY_LOOPS];
	int32_t b_steps[TINYML_PLAY_LOOPS];
	float out_min;
	float out_max;
};

struct tinyml_play_unary_f32 {
	uint32_t count;
	float low; /* of a clamp */
	float high;
};

/** Rows of `depth` elements, `step` apart. */
struct tinyml_play_softmax_f32 {
	uint32_t rows;
	uint32_t columns; /* rows that begin at neighbouring elements */
	uint32_t row_step;
	uint32_t depth;
	uint32_t step;
	float beta;
};

struct tinyml_play_pool_f32 {
	struct tinyml_window window;
	int16_t unused;
	float divisor; /* of means; 0: the elements of the window */
	float out_min;
	float out_max;
};

/* What the player calls, and what it checks, by structure. */

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
void tinyml_play_add_mve_s8(const struct tinyml_play *play);
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

void tinyml_play_take(const struct tinyml_play *play);
uint32_t tinyml_check_take(struct tinyml_check *check);
void tinyml_play_softmax_table_s8(const struct tinyml_play *play);
uint32_t tinyml_check_softmax_table_s8(struct tinyml_check *check);
void tinyml_play_conv_f32(const struct tinyml_play *play);
uint32_t tinyml_check_conv_f32(struct tinyml_check *check);
void tinyml_play_depthwise_conv_f32(const struct tinyml_play *play);
uint32_t tinyml_check_depthwise_conv_f32(struct tinyml_check *check);
void tinyml_play_dense_f32(const struct tinyml_play *play);
uint32_t tinyml_check_dense_f32(struct tinyml_check *check);

void tinyml_play_add_f32(const struct tinyml_play *play);
void tinyml_play_sub_f32(const struct tinyml_play *play);
void tinyml_play_mul_f32(const struct tinyml_play *play);
void tinyml_play_div_f32(const struct tinyml_play *play);
void tinyml_play_min_f32(const struct tinyml_play *play);
void tinyml_play_max_f32(const struct tinyml_play *play);
void tinyml_play_squared_difference_f32(const struct tinyml_play *play);
void tinyml_play_prelu_f32(const struct tinyml_play *play);
void tinyml_play_sigmoid_f32(const struct tinyml_play *play);
void tinyml_play_tanh_f32(const struct tinyml_play *play);
void tinyml_play_exp_f32(const struct tinyml_play *play);
void tinyml_play_log_f32(const struct tinyml_play *play);
void tinyml_play_sqrt_f32(const struct tinyml_play *play);
void tinyml_play_rsqrt_f32(const struct tinyml_play *play);
void tinyml_play_abs_f32(const struct tinyml_play *play);
void tinyml_play_neg_f32(const struct tinyml_play *play);
void tinyml_play_square_f32(const struct tinyml_play *play);
void tinyml_play_reciprocal_f32(const struct tinyml_play *play);
void tinyml_play_floor_f32(const struct tinyml_play *play);
void tinyml_play_clamp_f32(const struct tinyml_play *play);
void tinyml_play_softmax_f32(const struct tinyml_play *play);
void tinyml_play_average_pool_f32(const struct tinyml_play *play);
void tinyml_play_max_pool_f32(const struct tinyml_play *play);
uint32_t tinyml_check_binary_f32(struct tinyml_check *check);
uint32_t tinyml_check_unary_f32(struct tinyml_check *check);
uint32_t tinyml_check_softmax_f32(struct tinyml_check *check);
uint32_t tinyml_check_pool_f32(struct tinyml_check *check);

void tinyml_play_average_pool_s8(const struct tinyml_play *play);
uint32_t tinyml_check_average_pool_s8(struct tinyml_check *check);

void tinyml_play_softmax_s8(const struct tinyml_play *play);
uint32_t tinyml_check_softmax_s8(struct tinyml_check *check);

void tinyml_play_copy(const struct tinyml_play *play);
uint32_t tinyml_check_copy(struct tinyml_check *check);
void tinyml_play_fill(const struct tinyml_play *play);
uint32_t tinyml_check_fill(struct tinyml_check *check);
void tinyml_play_lookup(const struct tinyml_play *play);
uint32_t tinyml_check_lookup(struct tinyml_check *check);
void tinyml_play_move(const struct tinyml_play *play);
uint32_t tinyml_check_move(struct tinyml_check *check);
void tinyml_play_fill_loops(const struct tinyml_play *play);
uint32_t tinyml_check_fill_loops(struct tinyml_check *check);

void tinyml_play_sum_s8(const struct tinyml_play *play);
uint32_t tinyml_check_sum_s8(struct tinyml_check *check);

void tinyml_play_linear_s8(const struct tinyml_play *play);
void tinyml_play_mul_s8(const struct tinyml_play *play);
void tinyml_play_mul_once_s8(const struct tinyml_play *play);
void tinyml_play_prelu_s8(const struct tinyml_play *play);
void tinyml_play_prelu_once_s8(const struct tinyml_play *play);
void tinyml_play_rescaled_sum_s8(const struct tinyml_play *play);
void tinyml_play_squared_s8(const struct tinyml_play *play);
void tinyml_play_sum_once_s8(const struct tinyml_play *play);
void tinyml_play_max_s8(const struct tinyml_play *play);
void tinyml_play_min_s8(const struct tinyml_play *play);
uint32_t tinyml_check_binary_s8(struct tinyml_check *check);
uint32_t tinyml_check_linear_s8(struct tinyml_check *check);
uint32_t tinyml_check_sum_once_s8(struct tinyml_check *check);

void tinyml_play_mean_s8(const struct tinyml_play *play);
uint32_t tinyml_check_mean_s8(struct tinyml_check *check);
void tinyml_play_mean_any_s8(const struct tinyml_play *play);
uint32_t tinyml_check_mean_any_s8(struct tinyml_check *check);
void tinyml_play_max_pool_s8(const struct tinyml_play *play);
uint32_t tinyml_check_max_pool_s8(struct tinyml_check *check);
void tinyml_play_sums_s8(const struct tinyml_play *play);
uint32_t tinyml_check_sums_s8(struct tinyml_check *check);
void tinyml_play_means_s8(const struct tinyml_play *play);
uint32_t tinyml_check_means_s8(struct tinyml_check *check);
void tinyml_play_reduce_s8(const struct tinyml_play *play);
uint32_t tinyml_check_reduce_s8(struct tinyml_check *check);
void tinyml_play_quantize_bytes(const struct tinyml_play *play);
uint32_t tinyml_check_quantize_bytes(struct tinyml_check *check);
void tinyml_play_dequantize_s8(const struct tinyml_play *play);
void tinyml_play_dequantize_u8(const struct tinyml_play *play);
uint32_t tinyml_check_dequantize_bytes(struct tinyml_check *check);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_PLAY_RECORDS_H_ */
