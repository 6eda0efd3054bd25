/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Updates that go to computed places of a tensor, one after the other. */

#include <string.h>

#include <tinyml/index.h>

#include "nest.h"

#include "types.h"

static float play_scatter_real(uint32_t function, float y, float u)
{
	switch (function) {
	case TINYML_PLAY_SCATTER_ADD:
		return y + u;
	case TINYML_PLAY_SCATTER_MUL:
		return y * u;
	case TINYML_PLAY_SCATTER_MAX:
		return u > y ? u : y;
	default:
		return u < y ? u : y;
	}
}

/* The lower bits of sums and products count. */
static int64_t play_scatter_whole(uint32_t function, int64_t y, int64_t u)
{
	switch (function) {
	case TINYML_PLAY_SCATTER_ADD:
		return (int64_t)((uint64_t)y + (uint64_t)u);
	case TINYML_PLAY_SCATTER_MUL:
		return (int64_t)((uint64_t)y * (uint64_t)u);
	case TINYML_PLAY_SCATTER_MAX:
		return u > y ? u : y;
	default:
		return u < y ? u : y;
	}
}

/* So many elements of an update. */
static void play_scatter_piece(const struct tinyml_play_scatter_how *how, uint8_t *to,
			       const uint8_t *from, uint32_t elements)
{
	if (how->function == TINYML_PLAY_SCATTER_REPLACE) {
		memmove(to, from, elements * how->bytes);
		return;
	}
	for (; elements > 0u; elements--, to += how->bytes, from += how->bytes) {
		if (how->type == TINYML_FLOAT32) {
			float *const y = (void *)to;

			*y = play_scatter_real(how->function, *y,
					       *(const float *)(const void *)from);
		} else {
			tinyml_play_store(to, how->type,
					  play_scatter_whole(how->function,
							     tinyml_play_load(to, how->type),
							     tinyml_play_load(from, how->type)));
		}
	}
}

/* Elements have a size that their type has, unless they are only moved. Returns their alignment. */
static uint32_t play_scatter_size(struct tinyml_check *check,
				  const struct tinyml_play_scatter_how *how)
{
	const bool moved = how->function == TINYML_PLAY_SCATTER_REPLACE;

	tinyml_check_that(check,
			  (moved ? how->bytes > 0u && how->bytes <= 8u
				 : how->function < TINYML_PLAY_SCATTERS &&
					   (how->type == TINYML_FLOAT32 ||
					    tinyml_play_is_integer(how->type)) &&
					   how->bytes == tinyml_play_type_bytes(how->type)) &&
				  (how->index == TINYML_INT32 || how->index == TINYML_INT64));
	return moved ? 1u : how->bytes;
}

void tinyml_play_scatter(const struct tinyml_play *play)
{
	const struct tinyml_play_scatter *r = play->record;
	const uint32_t size = tinyml_play_type_bytes(r->how.index);
	const uint8_t *updates = play->operand[0], *index = play->operand[1];
	uint8_t *const y = play->operand[2];

	for (uint32_t i = r->count; i > 0u; i--) {
		uint32_t place = 0;

		for (uint32_t axis = 0; axis < r->depth; axis++, index += size) {
			place += (uint32_t)tinyml_index(tinyml_play_load(index, r->how.index),
							(int32_t)r->sizes[axis]) *
				 r->steps[axis];
		}
		play_scatter_piece(&r->how, y + place * r->how.bytes, updates, r->elements);
		updates += r->elements * r->how.bytes;
	}
}

uint32_t tinyml_check_scatter(struct tinyml_check *check)
{
	const struct tinyml_play_scatter *r = check->record;
	const uint32_t alignment = play_scatter_size(check, &r->how);
	const uint32_t index = tinyml_play_type_bytes(r->how.index), bytes = r->how.bytes;
	const uint32_t all = tinyml_check_times(r->count, r->elements);
	uint32_t reach = r->elements;

	tinyml_check_that(check, r->count > 0u && r->elements > 0u && r->depth > 0u &&
					 r->depth <= TINYML_PLAY_DEPTH);
	if (check->wrong) {
		return 0;
	}
	for (uint32_t i = 0; i < r->depth; i++) {
		tinyml_check_that(check, r->sizes[i] > 0u && r->sizes[i] <= INT32_MAX);
		reach = tinyml_check_plus(reach, tinyml_check_times(r->sizes[i] - 1u, r->steps[i]));
	}
	tinyml_check_reads(check, 0, tinyml_check_times(all, bytes), alignment);
	tinyml_check_reads(
		check, 1, tinyml_check_times(tinyml_check_times(r->count, r->depth), index), index);
	tinyml_check_writes(check, 2, tinyml_check_times(reach, bytes), alignment);
	return tinyml_check_plus(tinyml_check_times(all, 16), tinyml_check_times(r->count, 16));
}

void tinyml_play_scatter_elements(const struct tinyml_play *play)
{
	const struct tinyml_play_scatter_elements *r = play->record;
	const uint32_t size = tinyml_play_type_bytes(r->how.index);
	const uint8_t *updates = play->operand[0], *index = play->operand[1];
	uint32_t turn[TINYML_PLAY_LOOPS] = {0}, at = 0;
	uint8_t *const y = play->operand[2];

	do {
		const uint32_t place = (uint32_t)tinyml_index(tinyml_play_load(index, r->how.index),
							      (int32_t)r->size) *
				       r->step;

		play_scatter_piece(&r->how, y + (at + place) * r->how.bytes, updates, 1);
		updates += r->how.bytes;
		index += size;
		at = tinyml_play_next(turn, r->extents, r->steps, at);
	} while ((turn[0] | turn[1] | turn[2] | turn[3]) != 0u);
}

uint32_t tinyml_check_scatter_elements(struct tinyml_check *check)
{
	const struct tinyml_play_scatter_elements *r = check->record;
	const uint32_t alignment = play_scatter_size(check, &r->how);
	const uint32_t index = tinyml_play_type_bytes(r->how.index), bytes = r->how.bytes;
	const uint32_t count = tinyml_check_loops(check, r->extents);
	uint32_t reach;

	tinyml_check_that(check, r->size > 0u && r->size <= INT32_MAX);
	if (check->wrong) {
		return 0;
	}
	reach = tinyml_check_span(check, r->extents, r->steps, 0, 1);
	reach = tinyml_check_plus(reach, tinyml_check_times(r->size - 1u, r->step));
	tinyml_check_reads(check, 0, tinyml_check_times(count, bytes), alignment);
	tinyml_check_reads(check, 1, tinyml_check_times(count, index), index);
	tinyml_check_writes(check, 2, tinyml_check_times(reach, bytes), alignment);
	return tinyml_check_times(count, 32);
}
