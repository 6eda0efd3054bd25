/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** The records of comparisons, choices, places and resizing. */

#ifndef TINYML_PLAY_INDEXING_H_
#define TINYML_PLAY_INDEXING_H_

#include <tinyml/play_moves.h>

#ifdef __cplusplus
extern "C" {
#endif

enum tinyml_play_comparison {
	TINYML_PLAY_EQUAL,
	TINYML_PLAY_NOT_EQUAL,
	TINYML_PLAY_LESS,
	TINYML_PLAY_LESS_EQUAL,
	TINYML_PLAY_GREATER,
	TINYML_PLAY_GREATER_EQUAL,
	TINYML_PLAY_AND, /* of integers and truth values: whether they are not 0 */
	TINYML_PLAY_OR,
	TINYML_PLAY_XOR,
	TINYML_PLAY_COMPARISONS,
};

#define TINYML_PLAY_COMPARE_HEADROOM 8 /* bits */

/** Truth values of two operands. Loops as in struct tinyml_play_binary_s8. */
struct tinyml_play_compare {
	uint32_t extents[TINYML_PLAY_LOOPS];
	int32_t a_steps[TINYML_PLAY_LOOPS];
	int32_t b_steps[TINYML_PLAY_LOOPS];
	uint16_t type;     /* enum tinyml_type: float32, an integer or a truth value */
	uint16_t function; /* enum tinyml_play_comparison */
};

/** The same for int8: both are multiplied first, as TensorFlow Lite does. */
struct tinyml_play_compare_bytes {
	uint32_t extents[TINYML_PLAY_LOOPS];
	int32_t a_steps[TINYML_PLAY_LOOPS];
	int32_t b_steps[TINYML_PLAY_LOOPS];
	int32_t a_multiplier;
	int32_t b_multiplier;
	int16_t a_zero;
	int16_t b_zero;
	int16_t a_shift;
	int16_t b_shift;
	uint32_t function;
};

/** Elements of `bytes` from the second operand where the first is not 0, else from the third. */
struct tinyml_play_where {
	uint32_t extents[TINYML_PLAY_LOOPS];
	int32_t steps[TINYML_PLAY_LOOPS];
	int32_t a_steps[TINYML_PLAY_LOOPS];
	int32_t b_steps[TINYML_PLAY_LOOPS];
	uint32_t bytes;
};

/** Elements whose places along one axis are computed: an index for each. Steps in bytes; that of
 * the axis is `step`, and 0 in the loops. */
struct tinyml_play_gather_elements {
	uint32_t extents[TINYML_PLAY_LOOPS];
	int32_t steps[TINYML_PLAY_LOOPS];
	uint32_t size; /* of the axis */
	uint32_t step;
	uint32_t bytes; /* of an element */
	uint32_t type;  /* of indices */
};

/** The `count` best of `depth` elements, `step` apart, and their places, int64. */
struct tinyml_play_top_k {
	uint32_t rows;
	uint32_t step;
	uint32_t depth;
	uint32_t count;
	uint16_t type; /* enum tinyml_type: float32, int8, int16, int32 */
	uint16_t largest;
};

/** Tables have two neighbours, int16, and a fraction, float or int16, for each row and column of
 * the output. */
struct tinyml_play_resize_bilinear {
	uint32_t batches;
	uint32_t in_h;
	uint32_t in_w;
	uint32_t channels;
	uint32_t out_h;
	uint32_t out_w;
	uint32_t rows;
	uint32_t rows_by;
	uint32_t columns;
	uint32_t columns_by;
	uint32_t type; /* enum tinyml_type: float32, int8, int16 */
};

/* What the player calls, and what it checks. */

void tinyml_play_compare(const struct tinyml_play *play);
uint32_t tinyml_check_compare(struct tinyml_check *check);
void tinyml_play_compare_s8(const struct tinyml_play *play);
uint32_t tinyml_check_compare_s8(struct tinyml_check *check);
void tinyml_play_where(const struct tinyml_play *play);
uint32_t tinyml_check_where(struct tinyml_check *check);
void tinyml_play_gather_elements(const struct tinyml_play *play);
uint32_t tinyml_check_gather_elements(struct tinyml_check *check);
void tinyml_play_top_k(const struct tinyml_play *play);
uint32_t tinyml_check_top_k(struct tinyml_check *check);
void tinyml_play_resize_bilinear(const struct tinyml_play *play);
uint32_t tinyml_check_resize_bilinear(struct tinyml_check *check);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_PLAY_INDEXING_H_ */
