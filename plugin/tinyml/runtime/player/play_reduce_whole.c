/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Reductions of integers along axes: extremes of quantised tensors too, and sums that wrap. */

#include "types.h"

#include "nest.h"

/* What a reduction makes of what it has and of the next element. */
static uint64_t play_reduce_whole_step(uint32_t function, uint64_t acc, int64_t v)
{
	const uint64_t bits = (uint64_t)v;

	switch (function) {
	case TINYML_PLAY_LARGEST:
		return v > (int64_t)acc ? bits : acc;
	case TINYML_PLAY_SMALLEST:
		return v < (int64_t)acc ? bits : acc;
	case TINYML_PLAY_SUM:
		return acc + bits;
	case TINYML_PLAY_PRODUCT:
		return acc * bits;
	case TINYML_PLAY_SUM_OF_SIZES:
		return acc + (v < 0 ? 0u - bits : bits);
	default:
		return acc + bits * bits;
	}
}

/* Elements in a row, most often bytes of which one is the largest. */
static uint64_t play_reduce_whole_row(const struct tinyml_play_reduce_whole *r, const uint8_t *x,
				      int32_t step, uint64_t acc)
{
	uint32_t left = r->inner_extents[3];

	if (r->type == TINYML_INT8 && r->function == TINYML_PLAY_LARGEST) {
		int32_t largest = (int32_t)(int64_t)acc;

		for (; left > 0u; left--, x += step) {
			const int32_t v = (int8_t)*x;

			largest = v > largest ? v : largest;
		}
		return (uint64_t)(int64_t)largest;
	}
	for (; left > 0u; left--, x += step) {
		acc = play_reduce_whole_step(r->function, acc, tinyml_play_load(x, r->type));
	}
	return acc;
}

static uint64_t play_reduce_whole_first(const struct tinyml_play_reduce_whole *r)
{
	switch (r->function) {
	case TINYML_PLAY_LARGEST: /* one byte: a number that 32 bits hold */
		return r->type == TINYML_INT8 ? (uint64_t)INT8_MIN : (uint64_t)INT64_MIN;
	case TINYML_PLAY_SMALLEST:
		return INT64_MAX;
	case TINYML_PLAY_PRODUCT:
		return 1;
	default:
		return 0;
	}
}

void tinyml_play_reduce_whole(const struct tinyml_play *play)
{
	const struct tinyml_play_reduce_whole *r = play->record;
	const uint8_t *const x = play->operand[0];
	const uint32_t size = tinyml_play_type_bytes(r->type);
	const uint32_t outer[TINYML_PLAY_LOOPS] = {r->inner_extents[0], r->inner_extents[1],
						   r->inner_extents[2], 1};
	uint32_t turn[TINYML_PLAY_LOOPS] = {0}, at = 0;
	uint8_t *y = play->operand[1];

	do {
		uint32_t inner[TINYML_PLAY_LOOPS] = {0}, place = at;
		uint64_t acc = play_reduce_whole_first(r);

		do {
			acc = play_reduce_whole_row(r, x + (int32_t)(place * size),
						    r->inner_steps[3] * (int32_t)size, acc);
			place = tinyml_play_next(inner, outer, r->inner_steps, place);
		} while ((inner[0] | inner[1] | inner[2]) != 0u);
		tinyml_play_store(y, r->type, (int64_t)acc);
		y += size;
		at = tinyml_play_next(turn, r->extents, r->steps, at);
	} while ((turn[0] | turn[1] | turn[2] | turn[3]) != 0u);
}

uint32_t tinyml_check_reduce_whole(struct tinyml_check *check)
{
	const struct tinyml_play_reduce_whole *r = check->record;
	const uint32_t outputs = tinyml_check_loops(check, r->extents);
	const uint32_t terms = tinyml_check_loops(check, r->inner_extents);
	uint32_t reach, size;

	tinyml_check_that(check, tinyml_play_is_integer(r->type) &&
					 r->function < TINYML_PLAY_WHOLE_REDUCTIONS);
	if (check->wrong) {
		return 0;
	}
	size = tinyml_play_type_bytes(r->type);
	reach = tinyml_check_plus(
			tinyml_check_elements(check, r->extents, r->steps, 1),
			tinyml_check_elements(check, r->inner_extents, r->inner_steps, 1)) -
		1u;
	tinyml_check_reads(check, 0, tinyml_check_times(reach, size), size);
	tinyml_check_writes(check, 1, tinyml_check_times(outputs, size), size);
	return tinyml_check_times(outputs, tinyml_check_plus(tinyml_check_times(terms, 16), 16));
}
