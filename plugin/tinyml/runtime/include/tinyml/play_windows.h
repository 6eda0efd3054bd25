/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** The records of pools, reductions and softmax: many elements become one, or share a sum. */

#ifndef TINYML_PLAY_WINDOWS_H_
#define TINYML_PLAY_WINDOWS_H_

#include <tinyml/conv.h>
#include <tinyml/play_moves.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/** As struct tinyml_play_reduce_s8, for float. */
struct tinyml_play_reduce_f32 {
	uint32_t extents[TINYML_PLAY_LOOPS];
	int32_t steps[TINYML_PLAY_LOOPS];
	uint32_t inner_extents[TINYML_PLAY_LOOPS];
	int32_t inner_steps[TINYML_PLAY_LOOPS];
	float count;          /* of the elements that become one */
	uint32_t compensated; /* whether a long sum keeps what rounding loses */
};

enum tinyml_play_whole_reduction {
	TINYML_PLAY_LARGEST,
	TINYML_PLAY_SMALLEST,
	TINYML_PLAY_SUM,
	TINYML_PLAY_PRODUCT,
	TINYML_PLAY_SUM_OF_SIZES,
	TINYML_PLAY_SUM_OF_SQUARES,
	TINYML_PLAY_WHOLE_REDUCTIONS,
};

/** The same for integers and truth values; sums and products keep the lower bits. */
struct tinyml_play_reduce_whole {
	uint32_t extents[TINYML_PLAY_LOOPS];
	int32_t steps[TINYML_PLAY_LOOPS];
	uint32_t inner_extents[TINYML_PLAY_LOOPS];
	int32_t inner_steps[TINYML_PLAY_LOOPS];
	uint16_t type;     /* enum tinyml_type */
	uint16_t function; /* enum tinyml_play_whole_reduction */
};

/** Mean 0 and variance 1 of the elements that inner loops visit; or only the latter. */
struct tinyml_play_normalize_f32 {
	uint32_t extents[TINYML_PLAY_LOOPS];
	int32_t steps[TINYML_PLAY_LOOPS];
	uint32_t inner_extents[TINYML_PLAY_LOOPS];
	int32_t inner_steps[TINYML_PLAY_LOOPS];
	float count;
	float epsilon;
	uint32_t centred;
};

/** The place of the largest or smallest of `depth` elements that are `step` apart. */
struct tinyml_play_arg_reduce {
	uint32_t extents[TINYML_PLAY_LOOPS];
	int32_t steps[TINYML_PLAY_LOOPS];
	uint32_t depth;
	uint32_t step;
	uint16_t from;    /* enum tinyml_type */
	uint16_t to;      /* INT32 or INT64 */
	uint16_t largest; /* or the smallest */
	uint16_t last;    /* of equal elements the last one, or the first */
};

/* What the player calls, and what it checks. */

void tinyml_play_softmax_table_s8(const struct tinyml_play *play);
uint32_t tinyml_check_softmax_table_s8(struct tinyml_check *check);
void tinyml_play_softmax_f32(const struct tinyml_play *play);
void tinyml_play_average_pool_f32(const struct tinyml_play *play);
void tinyml_play_max_pool_f32(const struct tinyml_play *play);
uint32_t tinyml_check_softmax_f32(struct tinyml_check *check);
uint32_t tinyml_check_pool_f32(struct tinyml_check *check);
void tinyml_play_average_pool_s8(const struct tinyml_play *play);
uint32_t tinyml_check_average_pool_s8(struct tinyml_check *check);
void tinyml_play_softmax_s8(const struct tinyml_play *play);
uint32_t tinyml_check_softmax_s8(struct tinyml_check *check);
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
void tinyml_play_reduce_whole(const struct tinyml_play *play);
uint32_t tinyml_check_reduce_whole(struct tinyml_check *check);
void tinyml_play_reduce_sum_f32(const struct tinyml_play *play);
void tinyml_play_reduce_mean_f32(const struct tinyml_play *play);
void tinyml_play_reduce_prod_f32(const struct tinyml_play *play);
void tinyml_play_reduce_l1_f32(const struct tinyml_play *play);
void tinyml_play_reduce_l2_f32(const struct tinyml_play *play);
void tinyml_play_reduce_sum_square_f32(const struct tinyml_play *play);
void tinyml_play_reduce_log_sum_f32(const struct tinyml_play *play);
void tinyml_play_reduce_log_sum_exp_f32(const struct tinyml_play *play);
void tinyml_play_reduce_max_f32(const struct tinyml_play *play);
void tinyml_play_reduce_min_f32(const struct tinyml_play *play);
void tinyml_play_normalize_f32(const struct tinyml_play *play);
void tinyml_play_arg_reduce(const struct tinyml_play *play);
uint32_t tinyml_check_reduce_f32(struct tinyml_check *check);
uint32_t tinyml_check_normalize_f32(struct tinyml_check *check);
uint32_t tinyml_check_arg_reduce(struct tinyml_check *check);
void tinyml_play_log_softmax_f32(const struct tinyml_play *play);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_PLAY_WINDOWS_H_ */
