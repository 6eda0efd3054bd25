/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Blocks whose places are computed. */

#include <string.h>

#include <tinyml/index.h>
#include <tinyml/play_records.h>

#include "nest.h"

#include "types.h"

/* Where a block begins; its indices are kept inside their axes. */
static uint32_t play_gather_place(const struct tinyml_play_gather *r, const uint8_t *indices)
{
	const uint32_t size = tinyml_play_type_bytes(r->type);
	uint32_t place = 0;

	if (r->type == TINYML_INT32) {
		for (uint32_t i = 0; i < r->depth; i++, indices += size) {
			const int32_t index = *(const int32_t *)(const void *)indices;

			place += (uint32_t)tinyml_index(index, (int32_t)r->sizes[i]) * r->steps[i];
		}
		return place;
	}
	for (uint32_t i = 0; i < r->depth; i++, indices += size) {
		const int64_t index = tinyml_play_load(indices, r->type);

		place += (uint32_t)tinyml_index(index, (int32_t)r->sizes[i]) * r->steps[i];
	}
	return place;
}

void tinyml_play_gather(const struct tinyml_play *play)
{
	const struct tinyml_play_gather *r = play->record;
	const uint32_t size = tinyml_play_type_bytes(r->type);
	const uint8_t *x = play->operand[0], *batch = play->operand[1];
	uint8_t *y = play->operand[2];

	for (uint32_t b = r->batches; b > 0u; b--) {
		const uint8_t *indices = batch;

		for (uint32_t i = r->count; i > 0u; i--, indices += r->depth * size) {
			memcpy(y, x + play_gather_place(r, indices), r->bytes);
			y += r->bytes;
		}
		x += r->batch_step;
		batch += r->index_step * size;
	}
}

uint32_t tinyml_check_gather(struct tinyml_check *check)
{
	const struct tinyml_play_gather *r = check->record;
	const uint32_t size = tinyml_play_type_bytes(r->type);
	const uint32_t blocks = tinyml_check_times(r->batches, r->count);
	uint32_t reach, indices;

	tinyml_check_that(check, r->batches > 0u && r->count > 0u && r->depth > 0u &&
					 r->depth <= TINYML_PLAY_DEPTH &&
					 (r->type == TINYML_INT32 || r->type == TINYML_INT64));
	if (check->wrong) {
		return 0;
	}
	reach = tinyml_check_plus(r->bytes, tinyml_check_times(r->batches - 1u, r->batch_step));
	for (uint32_t i = 0; i < r->depth; i++) {
		tinyml_check_that(check, r->sizes[i] > 0u && r->sizes[i] <= INT32_MAX);
		reach = tinyml_check_plus(reach, tinyml_check_times(r->sizes[i] - 1u, r->steps[i]));
	}
	indices = tinyml_check_plus(tinyml_check_times(r->batches - 1u, r->index_step),
				    tinyml_check_times(r->count, r->depth));
	tinyml_check_reads(check, 0, reach, 1);
	tinyml_check_reads(check, 1, tinyml_check_times(indices, size), size);
	tinyml_check_writes(check, 2, tinyml_check_times(blocks, r->bytes), 1);
	return tinyml_check_times(blocks, tinyml_check_plus(r->bytes, 16));
}

void tinyml_play_gather_elements(const struct tinyml_play *play)
{
	const struct tinyml_play_gather_elements *r = play->record;
	const uint32_t index_bytes = tinyml_play_type_bytes(r->type);
	const uint8_t *const x = play->operand[0], *indices = play->operand[1];
	uint32_t turn[TINYML_PLAY_LOOPS] = {0}, at = 0;
	uint8_t *y = play->operand[2];

	do {
		const int32_t index =
			tinyml_index(tinyml_play_load(indices, r->type), (int32_t)r->size);

		memmove(y, x + at + (uint32_t)index * r->step, r->bytes);
		y += r->bytes;
		indices += index_bytes;
		at = tinyml_play_next(turn, r->extents, r->steps, at);
	} while ((turn[0] | turn[1] | turn[2] | turn[3]) != 0u);
}

uint32_t tinyml_check_gather_elements(struct tinyml_check *check)
{
	const struct tinyml_play_gather_elements *r = check->record;
	const uint32_t count = tinyml_check_loops(check, r->extents);
	const uint32_t size = tinyml_play_type_bytes(r->type);
	uint32_t reach;

	tinyml_check_that(check, r->bytes > 0u && r->bytes <= 8u && r->size > 0u &&
					 r->size <= INT32_MAX &&
					 (r->type == TINYML_INT32 || r->type == TINYML_INT64));
	if (check->wrong) {
		return 0;
	}
	reach = tinyml_check_span(check, r->extents, r->steps, 0, r->bytes);
	reach = tinyml_check_plus(reach, tinyml_check_times(r->size - 1u, r->step));
	tinyml_check_reads(check, 0, reach, 1);
	tinyml_check_reads(check, 1, tinyml_check_times(count, size), size);
	tinyml_check_writes(check, 2, tinyml_check_times(count, r->bytes), 1);
	return tinyml_check_times(count, 16);
}
