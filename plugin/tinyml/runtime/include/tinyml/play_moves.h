/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** The records of what moves elements or changes their type. */

#ifndef TINYML_PLAY_MOVES_H_
#define TINYML_PLAY_MOVES_H_

#include <tinyml/play.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/** Blocks of bytes, whose offsets along an axis are in a table of words, or multiples of a step. */
struct tinyml_play_take {
	uint32_t extents[TINYML_PLAY_LOOPS];
	uint32_t steps[TINYML_PLAY_LOOPS];  /* or the largest offset in the table */
	uint32_t tables[TINYML_PLAY_LOOPS]; /* 0: none */
	uint32_t start;
	uint32_t bytes;
};

struct tinyml_play_quantize {
	uint32_t count;
	float scale;
	int16_t zero;
	int16_t out_min;
	int16_t out_max;
	uint16_t to_even; /* halves; else away from zero */
};

/** struct tinyml_quantize_f32 */
struct tinyml_play_quantize_floats {
	int32_t count;
	int32_t zero;
	float scale;
};

struct tinyml_play_dequantize {
	uint32_t count;
	float scale;
	int32_t zero;
};

#define TINYML_PLAY_DEPTH 4

/** Blocks of bytes whose places are computed: `depth` indices each, which are kept inside. */
struct tinyml_play_gather {
	uint32_t batches;
	uint32_t batch_step;               /* bytes from a batch of the input to the next one */
	uint32_t count;                    /* of blocks in a batch */
	uint32_t index_step;               /* indices from a batch to the next one */
	uint32_t depth;                    /* at most TINYML_PLAY_DEPTH */
	uint32_t sizes[TINYML_PLAY_DEPTH]; /* of the axes that are indexed */
	uint32_t steps[TINYML_PLAY_DEPTH]; /* bytes */
	uint32_t bytes;
	uint32_t type; /* of indices: TINYML_INT32 or TINYML_INT64 */
};

/* What the player calls, and what it checks. */

void tinyml_play_take(const struct tinyml_play *play);
uint32_t tinyml_check_take(struct tinyml_check *check);
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
void tinyml_play_quantize_bytes(const struct tinyml_play *play);
uint32_t tinyml_check_quantize_bytes(struct tinyml_check *check);
void tinyml_play_quantize_floats_s8(const struct tinyml_play *play);
void tinyml_play_quantize_floats_s16(const struct tinyml_play *play);
uint32_t tinyml_check_quantize_floats_s8(struct tinyml_check *check);
uint32_t tinyml_check_quantize_floats_s16(struct tinyml_check *check);
void tinyml_play_dequantize_s8(const struct tinyml_play *play);
void tinyml_play_dequantize_u8(const struct tinyml_play *play);
uint32_t tinyml_check_dequantize_bytes(struct tinyml_check *check);
void tinyml_play_gather(const struct tinyml_play *play);
uint32_t tinyml_check_gather(struct tinyml_check *check);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_PLAY_MOVES_H_ */
