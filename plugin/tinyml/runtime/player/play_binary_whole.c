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
	case TINYML_PLAY_MOD:
		return tinyml_mod_s64(a, b);
	case TINYML_PLAY_REM:
		return tinyml_rem_s64(a, b);
	default:
		return a > b ? a : b;
	}
}

/* A row of elements of any type. */
static void play_binary_whole_row(const struct tinyml_play_binary_whole *r, const uint8_t *a,
				  const uint8_t *b, uint8_t *y)
{
	const int32_t size = (int32_t)tinyml_play_type_bytes(r->type);

	for (uint32_t l = r->extents[3]; l > 0u; l--, y += size) {
		const int64_t value = play_binary_whole_one(
			r->function, tinyml_play_load(a, r->type), tinyml_play_load(b, r->type));

		tinyml_play_store(y, r->type, value);
		a += r->a_steps[3] * size;
		b += r->b_steps[3] * size;
	}
}

/* The same with one function each, for int32 and int64, which exported models have most. */
#define ROW(name, type, value)                                                                     \
	static void play_binary_whole_##name(const struct tinyml_play_binary_whole *r,             \
					     const type *x, const type *z, type *y)                \
	{                                                                                          \
		const int32_t a_step = r->a_steps[3], b_step = r->b_steps[3];                      \
                                                                                                   \
		for (uint32_t l = r->extents[3]; l > 0u; l--, x += a_step, z += b_step) {          \
			const type a = *x, b = *z;                                                 \
                                                                                                   \
			*y++ = (type)(value);                                                      \
		}                                                                                  \
	}

ROW(add_s32, int32_t, (uint32_t)a + (uint32_t)b)
ROW(mul_s32, int32_t, (uint32_t)a *(uint32_t)b)
ROW(div_s32, int32_t, tinyml_div_s32(a, b))
ROW(add_s64, int64_t, (uint64_t)a + (uint64_t)b)
ROW(mul_s64, int64_t, (uint64_t)a *(uint64_t)b)

/* Quotients by one number, 2^shift, towards zero. */
static void play_binary_whole_shift(const struct tinyml_play_binary_whole *r, const int64_t *a,
				    uint32_t shift, int64_t *y)
{
	const int64_t mask = (INT64_C(1) << shift) - 1;
	const int32_t a_step = r->a_steps[3];

	for (uint32_t l = r->extents[3]; l > 0u; l--, a += a_step) {
		*y++ = (*a + ((*a >> 63) & mask)) >> shift;
	}
}

/* Whether there was a row for the type and the function; else any other does it. */
static bool play_binary_whole_quick(const struct tinyml_play_binary_whole *r, const void *a,
				    const void *b, void *y)
{
	const uint32_t wide = r->type == TINYML_INT64 ? (uint32_t)TINYML_PLAY_WHOLES : 0u;

	if (r->type != TINYML_INT32 && r->type != TINYML_INT64) {
		return false;
	}
	switch (r->function + wide) {
	case TINYML_PLAY_ADD:
		play_binary_whole_add_s32(r, a, b, y);
		return true;
	case TINYML_PLAY_MUL:
		play_binary_whole_mul_s32(r, a, b, y);
		return true;
	case TINYML_PLAY_DIV:
		play_binary_whole_div_s32(r, a, b, y);
		return true;
	case TINYML_PLAY_WHOLES + TINYML_PLAY_ADD:
		play_binary_whole_add_s64(r, a, b, y);
		return true;
	case TINYML_PLAY_WHOLES + TINYML_PLAY_MUL:
		play_binary_whole_mul_s64(r, a, b, y);
		return true;
	case TINYML_PLAY_WHOLES + TINYML_PLAY_DIV:
		for (uint32_t shift = 0; r->b_steps[3] == 0 && shift < 62u; shift++) {
			if (*(const int64_t *)b == INT64_C(1) << shift) {
				play_binary_whole_shift(r, a, shift, y);
				return true;
			}
		}
		return false;
	default:
		return false;
	}
}

void tinyml_play_binary_whole(const struct tinyml_play *play)
{
	const struct tinyml_play_binary_whole *r = play->record;
	const int32_t size = (int32_t)tinyml_play_type_bytes(r->type);
	const uint8_t *const a = play->operand[0], *const b = play->operand[1];
	const uint32_t rows[TINYML_PLAY_LOOPS] = {r->extents[0], r->extents[1], r->extents[2], 1};
	uint32_t turn[TINYML_PLAY_LOOPS] = {0}, b_turn[TINYML_PLAY_LOOPS] = {0}, at = 0, b_at = 0;
	uint8_t *y = play->operand[2];

	do {
		const uint8_t *const x = a + (int32_t)at * size, *const z =
									 b + (int32_t)b_at * size;

		if (!play_binary_whole_quick(r, x, z, y)) {
			play_binary_whole_row(r, x, z, y);
		}
		y += r->extents[3] * (uint32_t)size;
		at = tinyml_play_next(turn, rows, r->a_steps, at);
		b_at = tinyml_play_next(b_turn, rows, r->b_steps, b_at);
	} while ((turn[0] | turn[1] | turn[2]) != 0u);
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
