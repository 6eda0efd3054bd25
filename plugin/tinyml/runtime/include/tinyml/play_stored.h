/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** The records of float layers whose weights are stored in another form. */

#ifndef TINYML_PLAY_STORED_H_
#define TINYML_PLAY_STORED_H_

#include <tinyml/play.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Weights that are mostly zero. `runs` are places of single weights, or of runs of them. */
struct tinyml_play_dense_runs {
	int32_t rows;
	int32_t inputs;
	int32_t outputs;
	uint32_t weights;
	uint32_t runs;
	uint32_t counts;
	uint32_t scales; /* 0 if weights are float */
	uint32_t bias;   /* 0: none */
	float out_min;
	float out_max;
};

/** Integers times the scales of blocks: struct tinyml_steps_s4 or tinyml_steps_s8. */
struct tinyml_play_steps {
	int32_t inputs;
	int32_t block;
	uint32_t weights;
	uint32_t scales;
	uint32_t zeros; /* 0: none */
};

struct tinyml_play_dense_blocks {
	int32_t rows;
	int32_t outputs;
	struct tinyml_play_steps steps;
	uint32_t bias; /* 0: none */
	float out_min;
	float out_max;
};

/** Rows of a table, by `count` indices. */
struct tinyml_play_packed_rows {
	uint32_t rows; /* of the table */
	uint32_t count;
	uint32_t type; /* of indices: enum tinyml_type */
	struct tinyml_play_steps steps;
};

/* What the player calls, and what it checks. */

void tinyml_play_dense_sparse_f32(const struct tinyml_play *play);
uint32_t tinyml_check_dense_sparse_f32(struct tinyml_check *check);
void tinyml_play_dense_runs_f32(const struct tinyml_play *play);
uint32_t tinyml_check_dense_runs_f32(struct tinyml_check *check);
void tinyml_play_dense_runs_f32_s8(const struct tinyml_play *play);
uint32_t tinyml_check_dense_runs_f32_s8(struct tinyml_check *check);
void tinyml_play_dense_f32_s4(const struct tinyml_play *play);
uint32_t tinyml_check_dense_f32_s4(struct tinyml_check *check);
void tinyml_play_dense_blocks_f32_s8(const struct tinyml_play *play);
uint32_t tinyml_check_dense_blocks_f32_s8(struct tinyml_check *check);
void tinyml_play_row_f32_s4(const struct tinyml_play *play);
uint32_t tinyml_check_row_f32_s4(struct tinyml_check *check);
void tinyml_play_row_f32_s8(const struct tinyml_play *play);
uint32_t tinyml_check_row_f32_s8(struct tinyml_check *check);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_PLAY_STORED_H_ */
