/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Comparisons, and elements of one tensor or of another. */

#include <string.h>

#include <tinyml/fixed_point.h>

#include "nest.h"

#include "types.h"

/* Whether the order of two elements is one that a function asks for. */
static bool play_choose_order(uint32_t function, bool less, bool equal, bool greater)
{
	switch (function) {
	case TINYML_PLAY_EQUAL:
		return equal;
	case TINYML_PLAY_NOT_EQUAL:
		return !equal;
	case TINYML_PLAY_LESS:
		return less;
	case TINYML_PLAY_LESS_EQUAL:
		return less || equal;
	case TINYML_PLAY_GREATER:
		return greater;
	default:
		return greater || equal;
	}
}

static bool play_choose_one(const struct tinyml_play_compare *r, const uint8_t *x, const uint8_t *z)
{
	int64_t a, b;

	if (r->type == TINYML_FLOAT32) {
		const float u = *(const float *)(const void *)x,
			    v = *(const float *)(const void *)z;

		return play_choose_order(r->function, u<v, u == v, u> v);
	}
	a = tinyml_play_load(x, r->type);
	b = tinyml_play_load(z, r->type);
	switch (r->function) {
	case TINYML_PLAY_AND:
		return a != 0 && b != 0;
	case TINYML_PLAY_OR:
		return a != 0 || b != 0;
	case TINYML_PLAY_XOR:
		return (a != 0) != (b != 0);
	default:
		return play_choose_order(r->function, a<b, a == b, a> b);
	}
}

void tinyml_play_compare(const struct tinyml_play *play)
{
	const struct tinyml_play_compare *r = play->record;
	const int32_t size = (int32_t)tinyml_play_type_bytes(r->type);
	const uint8_t *const a = play->operand[0], *const b = play->operand[1];
	uint32_t turn[TINYML_PLAY_LOOPS] = {0}, b_turn[TINYML_PLAY_LOOPS] = {0}, at = 0, b_at = 0;
	uint8_t *y = play->operand[2];

	do {
		*y++ = play_choose_one(r, a + (int32_t)at * size, b + (int32_t)b_at * size) ? 1 : 0;
		at = tinyml_play_next(turn, r->extents, r->a_steps, at);
		b_at = tinyml_play_next(b_turn, r->extents, r->b_steps, b_at);
	} while ((turn[0] | turn[1] | turn[2] | turn[3]) != 0u);
}

uint32_t tinyml_check_compare(struct tinyml_check *check)
{
	const struct tinyml_play_compare *r = check->record;
	const uint32_t count = tinyml_check_loops(check, r->extents);
	uint32_t size;

	tinyml_check_that(check, (r->type == TINYML_FLOAT32
					  ? r->function <= TINYML_PLAY_GREATER_EQUAL
					  : tinyml_play_is_integer(r->type) &&
						    r->function < TINYML_PLAY_COMPARISONS));
	if (check->wrong) {
		return 0;
	}
	size = tinyml_play_type_bytes(r->type);
	tinyml_check_reads(check, 0, tinyml_check_elements(check, r->extents, r->a_steps, size),
			   size);
	tinyml_check_reads(check, 1, tinyml_check_elements(check, r->extents, r->b_steps, size),
			   size);
	tinyml_check_writes(check, 2, count, 1);
	return tinyml_check_times(count, 32);
}

/* Both operands on one scale. */
static int32_t play_choose_scaled(int32_t x, int32_t zero, int32_t multiplier, int32_t shift)
{
	return tinyml_rescale((x - zero) * (1 << TINYML_PLAY_COMPARE_HEADROOM), multiplier, shift);
}

void tinyml_play_compare_s8(const struct tinyml_play *play)
{
	const struct tinyml_play_compare_bytes *r = play->record;
	const int8_t *const a = play->operand[0], *const b = play->operand[1];
	uint32_t turn[TINYML_PLAY_LOOPS] = {0}, b_turn[TINYML_PLAY_LOOPS] = {0}, at = 0, b_at = 0;
	uint8_t *y = play->operand[2];

	do {
		const int32_t u =
			play_choose_scaled(a[(int32_t)at], r->a_zero, r->a_multiplier, r->a_shift);
		const int32_t v = play_choose_scaled(b[(int32_t)b_at], r->b_zero, r->b_multiplier,
						     r->b_shift);

		*y++ = play_choose_order(r->function, u<v, u == v, u> v) ? 1 : 0;
		at = tinyml_play_next(turn, r->extents, r->a_steps, at);
		b_at = tinyml_play_next(b_turn, r->extents, r->b_steps, b_at);
	} while ((turn[0] | turn[1] | turn[2] | turn[3]) != 0u);
}

uint32_t tinyml_check_compare_s8(struct tinyml_check *check)
{
	const struct tinyml_play_compare_bytes *r = check->record;
	const uint32_t count = tinyml_check_loops(check, r->extents);

	tinyml_check_that(check, r->function <= TINYML_PLAY_GREATER_EQUAL &&
					 tinyml_check_factor(r->a_multiplier, r->a_shift) &&
					 tinyml_check_factor(r->b_multiplier, r->b_shift));
	if (check->wrong) {
		return 0;
	}
	tinyml_check_reads(check, 0, tinyml_check_elements(check, r->extents, r->a_steps, 1), 1);
	tinyml_check_reads(check, 1, tinyml_check_elements(check, r->extents, r->b_steps, 1), 1);
	tinyml_check_writes(check, 2, count, 1);
	return tinyml_check_times(count, 16);
}

void tinyml_play_where(const struct tinyml_play *play)
{
	const struct tinyml_play_where *r = play->record;
	const int32_t size = (int32_t)r->bytes;
	const uint8_t *const truth = play->operand[0];
	const uint8_t *const a = play->operand[1], *const b = play->operand[2];
	uint32_t turn[TINYML_PLAY_LOOPS] = {0}, a_turn[TINYML_PLAY_LOOPS] = {0};
	uint32_t b_turn[TINYML_PLAY_LOOPS] = {0}, at = 0, a_at = 0, b_at = 0;
	uint8_t *y = play->operand[3];

	do {
		memmove(y,
			truth[(int32_t)at] != 0u ? a + (int32_t)a_at * size
						 : b + (int32_t)b_at * size,
			r->bytes);
		y += r->bytes;
		at = tinyml_play_next(turn, r->extents, r->steps, at);
		a_at = tinyml_play_next(a_turn, r->extents, r->a_steps, a_at);
		b_at = tinyml_play_next(b_turn, r->extents, r->b_steps, b_at);
	} while ((turn[0] | turn[1] | turn[2] | turn[3]) != 0u);
}

uint32_t tinyml_check_where(struct tinyml_check *check)
{
	const struct tinyml_play_where *r = check->record;
	const uint32_t count = tinyml_check_loops(check, r->extents), size = r->bytes;

	tinyml_check_that(check, size > 0u && size <= 8u);
	if (check->wrong) {
		return 0;
	}
	tinyml_check_reads(check, 0, tinyml_check_elements(check, r->extents, r->steps, 1), 1);
	tinyml_check_reads(check, 1, tinyml_check_elements(check, r->extents, r->a_steps, size), 1);
	tinyml_check_reads(check, 2, tinyml_check_elements(check, r->extents, r->b_steps, size), 1);
	tinyml_check_writes(check, 3, tinyml_check_times(count, size), 1);
	return tinyml_check_times(count, 16);
}
