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

/** A block of rows of bytes, whose place in the output is computed. Steps are in bytes. */
struct tinyml_play_update {
	uint32_t extents[TINYML_PLAY_LOOPS]; /* of the block */
	int32_t steps[TINYML_PLAY_LOOPS];    /* in the output */
	uint32_t bytes;
	uint32_t last[TINYML_PLAY_DEPTH]; /* by axis: the largest start; 0: there is no other */
	uint32_t last_steps[TINYML_PLAY_DEPTH];
	uint32_t starts[TINYML_PLAY_DEPTH]; /* where in the second operand the start is */
	uint32_t type;                      /* of starts */
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

enum tinyml_play_scatter_function {
	TINYML_PLAY_SCATTER_REPLACE,
	TINYML_PLAY_SCATTER_ADD,
	TINYML_PLAY_SCATTER_MUL,
	TINYML_PLAY_SCATTER_MAX,
	TINYML_PLAY_SCATTER_MIN,
	TINYML_PLAY_SCATTERS,
};

struct tinyml_play_scatter_how {
	uint16_t bytes;    /* of an element */
	uint16_t type;     /* enum tinyml_type; unless elements are replaced */
	uint16_t index;    /* INT32 or INT64 */
	uint16_t function; /* enum tinyml_play_scatter_function */
};

/** Pieces of `elements`, each with a position of `depth` indices. Operands: updates, indices, y. */
struct tinyml_play_scatter {
	uint32_t count; /* of pieces */
	uint32_t elements;
	uint32_t depth;                    /* at most TINYML_PLAY_DEPTH */
	uint32_t sizes[TINYML_PLAY_DEPTH]; /* of the axes that are indexed */
	uint32_t steps[TINYML_PLAY_DEPTH]; /* elements */
	struct tinyml_play_scatter_how how;
};

/** Elements one by one; indices are along one axis of `size`. Steps in elements. */
struct tinyml_play_scatter_elements {
	uint32_t extents[TINYML_PLAY_LOOPS];
	int32_t steps[TINYML_PLAY_LOOPS]; /* of y, without the axis */
	uint32_t size;
	uint32_t step;
	struct tinyml_play_scatter_how how;
};

/** An axis of a resized tensor. */
struct tinyml_play_resize_axis {
	uint32_t in;
	uint32_t out;
	uint32_t step; /* elements of the input */
	uint32_t out_step;
	uint32_t taps;    /* neighbours of an output */
	uint32_t places;  /* of the neighbours, uint16; 0: the axis stays */
	uint32_t factors; /* of the neighbours, float */
	uint32_t outside; /* for each output whether it is outside, a byte; 0: none is */
};

/** Axes that stay come first: products of weights begin with those of the first one that changes.
 */
struct tinyml_play_resize_weighted {
	struct tinyml_play_resize_axis axes[TINYML_PLAY_LOOPS];
	float extrapolation; /* what is outside */
};

/* What the player calls, and what it checks. */

void tinyml_play_compare(const struct tinyml_play *play);
uint32_t tinyml_check_compare(struct tinyml_check *check);
void tinyml_play_compare_s8(const struct tinyml_play *play);
uint32_t tinyml_check_compare_s8(struct tinyml_check *check);
void tinyml_play_where(const struct tinyml_play *play);
uint32_t tinyml_check_where(struct tinyml_check *check);
void tinyml_play_update(const struct tinyml_play *play);
uint32_t tinyml_check_update(struct tinyml_check *check);
void tinyml_play_gather_elements(const struct tinyml_play *play);
uint32_t tinyml_check_gather_elements(struct tinyml_check *check);
void tinyml_play_top_k(const struct tinyml_play *play);
uint32_t tinyml_check_top_k(struct tinyml_check *check);
void tinyml_play_resize_bilinear(const struct tinyml_play *play);
uint32_t tinyml_check_resize_bilinear(struct tinyml_check *check);

void tinyml_play_scatter(const struct tinyml_play *play);
uint32_t tinyml_check_scatter(struct tinyml_check *check);
void tinyml_play_scatter_elements(const struct tinyml_play *play);
uint32_t tinyml_check_scatter_elements(struct tinyml_check *check);
void tinyml_play_resize_weighted(const struct tinyml_play *play);
uint32_t tinyml_check_resize_weighted(struct tinyml_check *check);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_PLAY_INDEXING_H_ */
