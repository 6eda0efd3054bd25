/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** The record of decision trees. */

#ifndef TINYML_PLAY_TREES_H_
#define TINYML_PLAY_TREES_H_

#include <tinyml/play.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The most comparisons from a root to a leaf. */
#define TINYML_PLAY_TREE_DEPTH 64

/**
 * Sums of what the leaves of trees hold. Operands: x, y, scratch.
 *
 * Trees are a stream of bytes. A node begins with its head, of `head_bytes`. A head below
 * `features` is the feature that is compared; the limit follows, and the distance from this node to
 * the one after a "no", whose highest bit says whether what is not a number is a "yes". The node
 * after a "yes" comes next, and the one after a "no" directly after all that follows the "yes".
 * Other heads are leaves: their number plus `features`; if `number_bytes` is not 0, the number
 * follows the head `last_head`. Numbers are little-endian and not aligned.
 */
struct tinyml_play_trees {
	uint32_t rows;
	uint32_t features;
	uint32_t outputs;
	uint32_t trees;
	uint32_t nodes; /* the stream */
	uint32_t node_bytes;
	uint32_t roots;     /* where each tree begins in it: `root_bytes` each */
	uint32_t leaves;    /* how many there are */
	uint32_t starts;    /* of the weights of each leaf, and the end; 0: a leaf has one */
	uint32_t targets;   /* of each weight: the output that it is added to; 0: the only one */
	uint32_t weights;   /* int8, int16, int32 or float */
	uint32_t count;     /* of weights */
	uint32_t last_head; /* see above */
	float scale;        /* of sums of integers */
	uint8_t from;       /* enum tinyml_type of x: FLOAT32, INT16 or INT8 */
	uint8_t to;         /* of weights */
	uint8_t keys;       /* whether floats are compared as integers of the same order */
	uint8_t missing;    /* whether distances have a highest bit that means something */
	uint8_t head_bytes;
	uint8_t distance_bytes;
	uint8_t number_bytes;
	uint8_t root_bytes;
	uint8_t start_bytes;
	uint8_t target_bytes;
	uint8_t unused[2];
};

/* What the player calls, and what it checks. */

void tinyml_play_trees(const struct tinyml_play *play);
uint32_t tinyml_check_trees(struct tinyml_check *check);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_PLAY_TREES_H_ */
