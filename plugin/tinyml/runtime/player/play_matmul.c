/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Products of two matrices, neither of which is constant. */

#include <tinyml/fixed_point.h>

#include "nest.h"

void tinyml_play_matmul_f32(const struct tinyml_play *play)
{
	const struct tinyml_play_matmul_f32 *r = play->record;
	uint32_t turn[TINYML_PLAY_LOOPS] = {0}, b_turn[TINYML_PLAY_LOOPS] = {0}, at = 0, b_at = 0;
	float *y = play->operand[2];

	do {
		const float *a = (const float *)play->operand[0] + (int32_t)at;
		const float *b = (const float *)play->operand[1] + (int32_t)b_at;
		float acc = 0.0f;

		for (uint32_t k = r->depth; k > 0u; k--, b += r->b_step) {
			acc += *a++ * *b;
		}
		*y++ = acc;
		at = tinyml_play_next(turn, r->extents, r->a_steps, at);
		b_at = tinyml_play_next(b_turn, r->extents, r->b_steps, b_at);
	} while ((turn[0] | turn[1] | turn[2] | turn[3]) != 0u);
}

void tinyml_play_matmul_s32(const struct tinyml_play *play)
{
	const struct tinyml_play_matmul_f32 *r = play->record;
	uint32_t turn[TINYML_PLAY_LOOPS] = {0}, b_turn[TINYML_PLAY_LOOPS] = {0}, at = 0, b_at = 0;
	uint32_t *y = play->operand[2];

	do {
		const uint32_t *a = (const uint32_t *)play->operand[0] + (int32_t)at;
		const uint32_t *b = (const uint32_t *)play->operand[1] + (int32_t)b_at;
		uint32_t acc = 0;

		for (uint32_t k = r->depth; k > 0u; k--, b += r->b_step) {
			acc += *a++ * *b;
		}
		*y++ = acc;
		at = tinyml_play_next(turn, r->extents, r->a_steps, at);
		b_at = tinyml_play_next(b_turn, r->extents, r->b_steps, b_at);
	} while ((turn[0] | turn[1] | turn[2] | turn[3]) != 0u);
}

void tinyml_play_matmul_s8(const struct tinyml_play *play)
{
	const struct tinyml_play_matmul_s8 *r = play->record;
	const int32_t a_zero = r->a_zero, b_zero = r->b_zero;
	uint32_t turn[TINYML_PLAY_LOOPS] = {0}, b_turn[TINYML_PLAY_LOOPS] = {0}, at = 0, b_at = 0;
	int8_t *y = play->operand[2];

	do {
		const int8_t *a = (const int8_t *)play->operand[0] + (int32_t)at;
		const int8_t *b = (const int8_t *)play->operand[1] + (int32_t)b_at;
		int32_t acc = 0;

		for (uint32_t k = r->depth; k > 0u; k--, b += r->b_step) {
			acc += (*a++ - a_zero) * (*b - b_zero);
		}
		acc = r->to_even != 0u ? tinyml_rescale_to_even(acc, r->multiplier, r->shift)
				       : tinyml_rescale(acc, r->multiplier, r->shift);
		*y++ = (int8_t)tinyml_clamp(tinyml_play_plus(acc, r->out_zero), INT8_MIN, INT8_MAX);
		at = tinyml_play_next(turn, r->extents, r->a_steps, at);
		b_at = tinyml_play_next(b_turn, r->extents, r->b_steps, b_at);
	} while ((turn[0] | turn[1] | turn[2] | turn[3]) != 0u);
}

/* The first members are those of all matrices. */
static uint32_t play_matmul_check(struct tinyml_check *check, uint32_t size)
{
	const struct tinyml_play_matmul_f32 *r = check->record;
	const uint32_t outputs = tinyml_check_loops(check, r->extents);
	uint32_t a, b;

	tinyml_check_that(check, r->depth > 0u);
	if (check->wrong) {
		return 0;
	}
	a = tinyml_check_elements(check, r->extents, r->a_steps, 1);
	a = tinyml_check_plus(a, r->depth - 1u);
	b = tinyml_check_elements(check, r->extents, r->b_steps, 1);
	b = tinyml_check_plus(b, tinyml_check_times(r->depth - 1u, r->b_step));
	tinyml_check_reads(check, 0, tinyml_check_times(a, size), size);
	tinyml_check_reads(check, 1, tinyml_check_times(b, size), size);
	tinyml_check_writes(check, 2, tinyml_check_times(outputs, size), size);
	return tinyml_check_times(outputs, tinyml_check_plus(r->depth, 4));
}

uint32_t tinyml_check_matmul_f32(struct tinyml_check *check)
{
	return play_matmul_check(check, 4);
}

uint32_t tinyml_check_matmul_s8(struct tinyml_check *check)
{
	const struct tinyml_play_matmul_s8 *r = check->record;

	tinyml_check_that(check, tinyml_check_factor(r->multiplier, r->shift) &&
					 r->depth < 1u << 15 && r->a_zero >= INT8_MIN &&
					 r->a_zero <= INT8_MAX && r->b_zero >= INT8_MIN &&
					 r->b_zero <= INT8_MAX);
	return play_matmul_check(check, 1);
}
