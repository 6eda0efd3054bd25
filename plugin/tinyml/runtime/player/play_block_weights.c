/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Float layers whose weights are small integers times the scales of blocks:
 * <tinyml/block_weights.h>.
 */

#include <stddef.h>

#include <tinyml/block_weights.h>
#include <tinyml/index.h>
#include <tinyml/play_records.h>

#include "types.h"

#define MOST (1 << 24) /* inputs, and inputs of a block: 32 bits hold their sums */

/* Members that struct tinyml_steps_s4 and tinyml_steps_s8 have. */
#define STEPS(record)                                                                              \
	{                                                                                          \
		.inputs = (record)->steps.inputs,                                                  \
		.block = (record)->steps.block,                                                    \
		.weights = tinyml_play_table(play, (record)->steps.weights),                       \
		.scales = tinyml_play_table(play, (record)->steps.scales),                         \
		.zeros = tinyml_play_table(play, (record)->steps.zeros),                           \
	}

/* A dense layer, with one kernel for each kind of weights. */
#define DENSE(name)                                                                                \
	void tinyml_play_##name(const struct tinyml_play *play)                                    \
	{                                                                                          \
		typedef void kernel(const struct tinyml_##name *, const float *, float *,          \
				    float *);                                                      \
		const struct tinyml_play_dense_blocks *record = play->record;                      \
		const struct tinyml_##name p = {                                                   \
			.rows = record->rows,                                                      \
			.outputs = record->outputs,                                                \
			.steps = STEPS(record),                                                    \
			.bias = tinyml_play_table(play, record->bias),                             \
			.out_min = record->out_min,                                                \
			.out_max = record->out_max,                                                \
		};                                                                                 \
                                                                                                   \
		((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1],         \
						   play->operand[2]);                              \
	}

DENSE(dense_f32_s4)
DENSE(dense_blocks_f32_s8)

/* The row that index `i` chooses. */
static int32_t play_block_weights_row(const struct tinyml_play *play, uint32_t i)
{
	const struct tinyml_play_packed_rows *r = play->record;
	const uint8_t *const indices = play->operand[0];

	return tinyml_index(
		tinyml_play_load(indices + i * tinyml_play_type_bytes(r->type), r->type),
		(int32_t)r->rows);
}

#define ROWS(name, kind)                                                                           \
	void tinyml_play_##name(const struct tinyml_play *play)                                    \
	{                                                                                          \
		typedef void kernel(const struct kind *, int32_t, float *);                        \
		const struct tinyml_play_packed_rows *record = play->record;                       \
		const struct kind p = STEPS(record);                                               \
		float *y = play->operand[1];                                                       \
                                                                                                   \
		for (uint32_t i = 0; i < record->count; i++, y += record->steps.inputs) {          \
			((kernel *)play->kernel->function)(&p, play_block_weights_row(play, i),    \
							   y);                                     \
		}                                                                                  \
	}

ROWS(row_f32_s4, tinyml_steps_s4)
ROWS(row_f32_s8, tinyml_steps_s8)

static uint32_t play_block_weights_count(const struct tinyml_play_steps *r)
{
	return ((uint32_t)r->inputs + (uint32_t)r->block - 1u) / (uint32_t)r->block;
}

/* The tables of so many filters; returns the blocks of one. */
static uint32_t play_block_weights_steps(struct tinyml_check *check,
					 const struct tinyml_play_steps *r, uint32_t filters,
					 bool nibbles)
{
	uint32_t blocks, rest, bytes;

	tinyml_check_that(check, r->inputs > 0 && r->inputs <= MOST && r->block > 0 &&
					 r->block <= MOST && r->weights != 0u && r->scales != 0u);
	if (check->wrong) {
		return 0;
	}
	blocks = play_block_weights_count(r);
	bytes = (uint32_t)r->inputs;
	if (nibbles) { /* eight in a word; every block begins with one */
		rest = (uint32_t)r->inputs % (uint32_t)r->block;
		bytes = tinyml_check_times((uint32_t)r->inputs / (uint32_t)r->block,
					   ((uint32_t)r->block + 7u) / 8u * 4u);
		bytes = tinyml_check_plus(bytes, (rest + 7u) / 8u * 4u);
	}
	blocks = tinyml_check_times(filters, blocks);
	tinyml_check_constants(check, r->weights, tinyml_check_times(filters, bytes),
			       nibbles ? 4 : 1);
	tinyml_check_constants(check, r->scales, tinyml_check_times(blocks, 4), 4);
	if (r->zeros != 0u) {
		tinyml_check_constants(check, r->zeros, tinyml_check_times(blocks, nibbles ? 1 : 2),
				       nibbles ? 1 : 2);
	}
	return play_block_weights_count(r);
}

static uint32_t play_block_weights_dense(struct tinyml_check *check, bool nibbles)
{
	const struct tinyml_play_dense_blocks *r = check->record;
	const uint32_t rows = (uint32_t)r->rows, inputs = (uint32_t)r->steps.inputs;
	const uint32_t outputs = tinyml_check_times(rows, (uint32_t)r->outputs);
	uint32_t blocks;

	tinyml_check_that(check, r->rows > 0 && r->outputs > 0);
	blocks = play_block_weights_steps(check, &r->steps, (uint32_t)r->outputs, nibbles);
	tinyml_check_reads(check, 0, tinyml_check_times(tinyml_check_times(rows, inputs), 4), 4);
	tinyml_check_writes(check, 1, tinyml_check_times(outputs, 4), 4);
	tinyml_check_writes(check, 2, tinyml_check_times(blocks, 4), 4);
	if (r->bias != 0u) {
		tinyml_check_constants(check, r->bias, tinyml_check_times((uint32_t)r->outputs, 4),
				       4);
	}
	return tinyml_check_times(tinyml_check_plus(outputs, rows),
				  tinyml_check_times(tinyml_check_plus(inputs, 1), 2));
}

uint32_t tinyml_check_dense_f32_s4(struct tinyml_check *check)
{
	return play_block_weights_dense(check, true);
}

uint32_t tinyml_check_dense_blocks_f32_s8(struct tinyml_check *check)
{
	return play_block_weights_dense(check, false);
}

static uint32_t play_block_weights_rows(struct tinyml_check *check, bool nibbles)
{
	const struct tinyml_play_packed_rows *r = check->record;
	const uint32_t elements = tinyml_check_times(r->count, (uint32_t)r->steps.inputs);
	const uint32_t size = tinyml_play_type_bytes(r->type);

	tinyml_check_that(check, r->rows > 0u && r->rows <= INT32_MAX &&
					 (r->type == TINYML_INT32 || r->type == TINYML_INT64));
	(void)play_block_weights_steps(check, &r->steps, r->rows, nibbles);
	tinyml_check_reads(check, 0, tinyml_check_times(r->count, size), size);
	tinyml_check_writes(check, 1, tinyml_check_times(elements, 4), 4);
	return tinyml_check_plus(tinyml_check_times(elements, 2), tinyml_check_times(r->count, 16));
}

uint32_t tinyml_check_row_f32_s4(struct tinyml_check *check)
{
	return play_block_weights_rows(check, true);
}

uint32_t tinyml_check_row_f32_s8(struct tinyml_check *check)
{
	return play_block_weights_rows(check, false);
}
