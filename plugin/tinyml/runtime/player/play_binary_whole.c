/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Functions of two tensors of integers that are not quantised. */

#include <tinyml/scalar.h>

#include "nest.h"

#include "types.h"

/* In 64 bits, of which the result's type keeps the lower ones. */
static int64_t play_binary_whole_one(uint32_t function, int64_t a, int64_t b)
{
	switch (function) {
	case TINYML_PLAY_ADD:
		return (int64_t)((uint64_t)a + (uint64_t)b);
	case TINYML_PLAY_SUB:
		return (int64_t)((uint64_t)a - (uint64_t)b);
	case TINYML_PLAY_MUL:
		return (int64_t)((uint64_t)a * (uint64_t)b);
	case TINYML_PLAY_DIV:
		return tinyml_div_s64(a, b);
	case TINYML_PLAY_MIN:
		return a < b ? a : b;
	default:
		return a > b ? a : b;
	}
}

void tinyml_play_binary_whole(const struct tinyml_play *play)
{
	const struct tinyml_play_binary_whole *r = play->record;
	const int32_t size = (int32_t)tinyml_play_type_bytes(r->type);
	const uint8_t *const a = play->operand[0], *const b = play->operand[1];
	uint32_t turn[TINYML_PLAY_LOOPS] = {0}, b_turn[TINYML_PLAY_LOOPS] = {0}, at = 0, b_at = 0;
	uint8_t *y = play->operand[2];

	do {
		const int64_t value = play_binary_whole_one(
			r->function, tinyml_play_load(a + (int32_t)at * size, r->type),
			tinyml_play_load(b + (int32_t)b_at * size, r->type));

		tinyml_play_store(y, r->type, value);
		y += size;
		at = tinyml_play_next(turn, r->extents, r->a_steps, at);
		b_at = tinyml_play_next(b_turn, r->extents, r->b_steps, b_at);
	} while ((turn[0] | turn[1] | turn[2] | turn[3]) != 0u);
}

uint32_t tinyml_check_binary_whole(struct tinyml_check *check)
{
	const struct tinyml_play_binary_whole *r = check->record;
	const uint32_t count = tinyml_check_loops(check, r->extents);
	uint32_t size;

	tinyml_check_that(check, tinyml_play_is_integer(r->type) && r->type != TINYML_BOOL &&
					 r->function < TINYML_PLAY_WHOLES);
	if (check->wrong) {
		return 0;
	}
	size = tinyml_play_type_bytes(r->type);
	tinyml_check_reads(check, 0, tinyml_check_elements(check, r->extents, r->a_steps, size),
			   size);
	tinyml_check_reads(check, 1, tinyml_check_elements(check, r->extents, r->b_steps, size),
			   size);
	tinyml_check_writes(check, 2, tinyml_check_times(count, size), size);
	return tinyml_check_times(count, 32);
}
