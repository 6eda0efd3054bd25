/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A block that replaces a part of a tensor, whose place is computed: rows that loops collect. */

#include <string.h>

#include <tinyml/index.h>

#include "nest.h"

#include "types.h"

/* Where the block begins; it is kept inside. */
static uint32_t play_update_place(const struct tinyml_play_update *r, const uint8_t *starts)
{
	const uint32_t size = tinyml_play_type_bytes(r->type);
	uint32_t place = 0;

	for (uint32_t i = 0; i < TINYML_PLAY_DEPTH; i++) {
		if (r->last[i] != 0u) {
			const int64_t start =
				tinyml_play_load(starts + r->starts[i] * size, r->type);

			place += (uint32_t)tinyml_limited(start, 0, (int32_t)r->last[i]) *
				 r->last_steps[i];
		}
	}
	return place;
}

void tinyml_play_update(const struct tinyml_play *play)
{
	const struct tinyml_play_update *r = play->record;
	const uint8_t *block = play->operand[0];
	uint8_t *const y = (uint8_t *)play->operand[2] + play_update_place(r, play->operand[1]);
	uint32_t turn[TINYML_PLAY_LOOPS] = {0}, at = 0;

	do {
		memcpy(y + (int32_t)at, block, r->bytes);
		block += r->bytes;
		at = tinyml_play_next(turn, r->extents, r->steps, at);
	} while ((turn[0] | turn[1] | turn[2] | turn[3]) != 0u);
}

uint32_t tinyml_check_update(struct tinyml_check *check)
{
	const struct tinyml_play_update *r = check->record;
	const uint32_t size = tinyml_play_type_bytes(r->type);
	const uint32_t rows = tinyml_check_loops(check, r->extents);
	uint32_t reach, starts = 0;

	tinyml_check_that(check, r->type == TINYML_INT32 || r->type == TINYML_INT64);
	if (check->wrong) {
		return 0;
	}
	reach = tinyml_check_span(check, r->extents, r->steps, 0, r->bytes);
	for (uint32_t i = 0; i < TINYML_PLAY_DEPTH; i++) {
		const uint32_t behind = tinyml_check_plus(r->starts[i], 1);

		tinyml_check_that(check, r->last[i] <= INT32_MAX);
		reach = tinyml_check_plus(reach, tinyml_check_times(r->last[i], r->last_steps[i]));
		starts = r->last[i] != 0u && behind > starts ? behind : starts;
	}
	tinyml_check_reads(check, 0, tinyml_check_times(rows, r->bytes), 1);
	tinyml_check_reads(check, 1, tinyml_check_times(starts, size), size);
	tinyml_check_writes(check, 2, reach, 1);
	return tinyml_check_times(rows, tinyml_check_plus(r->bytes, 16));
}
