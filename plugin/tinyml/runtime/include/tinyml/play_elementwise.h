/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** The records of functions of one or two elements. */

#ifndef TINYML_PLAY_ELEMENTWISE_H_
#define TINYML_PLAY_ELEMENTWISE_H_

#include <tinyml/play_moves.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/** From one type to another. */
struct tinyml_play_cast {
	uint32_t count;
	uint16_t from; /* enum tinyml_type */
	uint16_t to;
};

enum tinyml_play_whole {
	TINYML_PLAY_ADD,
	TINYML_PLAY_SUB,
	TINYML_PLAY_MUL,
	TINYML_PLAY_DIV, /* towards zero; by zero gives 0 */
	TINYML_PLAY_MIN,
	TINYML_PLAY_MAX,
	TINYML_PLAY_MOD, /* with the sign of the divisor; by zero gives 0 */
	TINYML_PLAY_REM, /* with the sign of the dividend */
	TINYML_PLAY_WHOLES,
};

/** A function of integers that are not quantised. Loops as in struct tinyml_play_binary_s8. */
struct tinyml_play_binary_whole {
	uint32_t extents[TINYML_PLAY_LOOPS];
	int32_t a_steps[TINYML_PLAY_LOOPS];
	int32_t b_steps[TINYML_PLAY_LOOPS];
	uint16_t type;     /* enum tinyml_type */
	uint16_t function; /* enum tinyml_play_whole */
};

/* What the player calls, and what it checks. */

void tinyml_play_add_mve_s8(const struct tinyml_play *play);
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
uint32_t tinyml_check_binary_f32(struct tinyml_check *check);
uint32_t tinyml_check_unary_f32(struct tinyml_check *check);
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
void tinyml_play_ceil_f32(const struct tinyml_play *play);
void tinyml_play_round_f32(const struct tinyml_play *play);
void tinyml_play_sin_f32(const struct tinyml_play *play);
void tinyml_play_cos_f32(const struct tinyml_play *play);
void tinyml_play_tan_f32(const struct tinyml_play *play);
void tinyml_play_asin_f32(const struct tinyml_play *play);
void tinyml_play_acos_f32(const struct tinyml_play *play);
void tinyml_play_atan_f32(const struct tinyml_play *play);
void tinyml_play_sinh_f32(const struct tinyml_play *play);
void tinyml_play_cosh_f32(const struct tinyml_play *play);
void tinyml_play_asinh_f32(const struct tinyml_play *play);
void tinyml_play_acosh_f32(const struct tinyml_play *play);
void tinyml_play_atanh_f32(const struct tinyml_play *play);
void tinyml_play_erf_f32(const struct tinyml_play *play);
void tinyml_play_softplus_f32(const struct tinyml_play *play);
void tinyml_play_softsign_f32(const struct tinyml_play *play);
void tinyml_play_mish_f32(const struct tinyml_play *play);
void tinyml_play_gelu_f32(const struct tinyml_play *play);
void tinyml_play_gelu_tanh_f32(const struct tinyml_play *play);
void tinyml_play_swish_f32(const struct tinyml_play *play);
void tinyml_play_hard_sigmoid_f32(const struct tinyml_play *play);
void tinyml_play_hard_swish_f32(const struct tinyml_play *play);
void tinyml_play_leaky_relu_f32(const struct tinyml_play *play);
void tinyml_play_elu_f32(const struct tinyml_play *play);
void tinyml_play_celu_f32(const struct tinyml_play *play);
void tinyml_play_selu_f32(const struct tinyml_play *play);
void tinyml_play_thresholded_relu_f32(const struct tinyml_play *play);
void tinyml_play_sign_f32(const struct tinyml_play *play);
void tinyml_play_cast_integers(const struct tinyml_play *play);
void tinyml_play_cast_to_f32(const struct tinyml_play *play);
void tinyml_play_cast_from_f32(const struct tinyml_play *play);
uint32_t tinyml_check_cast_integers(struct tinyml_check *check);
uint32_t tinyml_check_cast_to_f32(struct tinyml_check *check);
uint32_t tinyml_check_cast_from_f32(struct tinyml_check *check);
void tinyml_play_binary_whole(const struct tinyml_play *play);
uint32_t tinyml_check_binary_whole(struct tinyml_check *check);
void tinyml_play_linear_u8(const struct tinyml_play *play);
void tinyml_play_mul_u8(const struct tinyml_play *play);
void tinyml_play_mul_once_u8(const struct tinyml_play *play);
void tinyml_play_prelu_u8(const struct tinyml_play *play);
void tinyml_play_prelu_once_u8(const struct tinyml_play *play);
void tinyml_play_rescaled_sum_u8(const struct tinyml_play *play);
void tinyml_play_squared_u8(const struct tinyml_play *play);
void tinyml_play_sum_once_u8(const struct tinyml_play *play);
void tinyml_play_max_u8(const struct tinyml_play *play);
void tinyml_play_min_u8(const struct tinyml_play *play);
void tinyml_play_mul_s16(const struct tinyml_play *play);
void tinyml_play_mul_once_s16(const struct tinyml_play *play);
void tinyml_play_prelu_s16(const struct tinyml_play *play);
void tinyml_play_prelu_once_s16(const struct tinyml_play *play);
void tinyml_play_rescaled_sum_s16(const struct tinyml_play *play);
void tinyml_play_squared_s16(const struct tinyml_play *play);
void tinyml_play_sum_once_s16(const struct tinyml_play *play);
void tinyml_play_max_s16(const struct tinyml_play *play);
void tinyml_play_min_s16(const struct tinyml_play *play);
uint32_t tinyml_check_binary_u8(struct tinyml_check *check);
uint32_t tinyml_check_linear_u8(struct tinyml_check *check);
uint32_t tinyml_check_sum_once_u8(struct tinyml_check *check);
uint32_t tinyml_check_binary_s16(struct tinyml_check *check);
uint32_t tinyml_check_sum_once_s16(struct tinyml_check *check);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_PLAY_ELEMENTWISE_H_ */
