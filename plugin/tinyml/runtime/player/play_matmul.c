/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Products of two matrices, neither of which is constant. */

#include <tinyml/conv_s16.h>
#include <tinyml/fixed_point.h>

#include "nest.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Makes one output of a row and a column. */
typedef void play_matmul_one(const void *record, const void *a, const void *b, void *y);

/* All outputs; `one` and the bytes of an element are known where this is inlined. */
static ALWAYS_INLINE void play_matmul_all(const struct tinyml_play *play, int32_t size,
					  play_matmul_one *one)
{
	const struct tinyml_play_matmul_f32 *r = play->record;
	const uint8_t *a0 = play->operand[0], *b0 = play->operand[1];
	uint8_t *y = play->operand[2];

	for (uint32_t i = 0; i < r->extents[0]; i++) {
		const uint8_t *a1 = a0, *b1 = b0;

		for (uint32_t j = 0; j < r->extents[1]; j++) {
			const uint8_t *a2 = a1, *b2 = b1;

			for (uint32_t k = 0; k < r->extents[2]; k++) {
				const uint8_t *a = a2, *b = b2;

				for (uint32_t l = 0; l < r->extents[3]; l++, y += size) {
					one(r, a, b, y);
					a += r->a_steps[3] * size;
					b += r->b_steps[3] * size;
				}
				a2 += r->a_steps[2] * size;
				b2 += r->b_steps[2] * size;
			}
			a1 += r->a_steps[1] * size;
			b1 += r->b_steps[1] * size;
		}
		a0 += r->a_steps[0] * size;
		b0 += r->b_steps[0] * size;
	}
}

static ALWAYS_INLINE void play_matmul_one_f32(const void *record, const void *x, const void *w,
					      void *y)
{
	const struct tinyml_play_matmul_f32 *r = record;
	const float *a = x, *b = w;
	float acc = 0.0f;

	for (uint32_t k = r->depth; k > 0u; k--, b += r->b_step) {
		acc += *a++ * *b;
	}
	*(float *)y = acc;
}

static ALWAYS_INLINE void play_matmul_one_s32(const void *record, const void *x, const void *w,
					      void *y)
{
	const struct tinyml_play_matmul_f32 *r = record;
	const uint32_t *a = x, *b = w;
	uint32_t acc = 0;

	for (uint32_t k = r->depth; k > 0u; k--, b += r->b_step) {
		acc += *a++ * *b;
	}
	*(uint32_t *)y = acc;
}

static ALWAYS_INLINE void play_matmul_one_s8(const void *record, const void *x, const void *w,
					     void *y)
{
	const struct tinyml_play_matmul_s8 *r = record;
	const int32_t a_zero = r->a_zero, b_zero = r->b_zero;
	const int8_t *a = x, *b = w;
	int32_t acc = 0;

	for (uint32_t k = r->depth; k > 0u; k--, b += r->b_step) {
		acc += (*a++ - a_zero) * (*b - b_zero);
	}
	acc = r->to_even != 0u ? tinyml_rescale_to_even(acc, r->multiplier, r->shift)
			       : tinyml_rescale(acc, r->multiplier, r->shift);
	*(int8_t *)y = (int8_t)tinyml_clamp(tinyml_play_plus(acc, r->out_zero), INT8_MIN, INT8_MAX);
}

static ALWAYS_INLINE void play_matmul_one_s16(const void *record, const void *x, const void *w,
					      void *y)
{
	const struct tinyml_play_matmul_s8 *r = record;
	const int16_t *a = x, *b = w;
	int64_t acc = 0;

	for (uint32_t k = r->depth; k > 0u; k--, b += r->b_step) {
		acc += *a++ * *b;
	}
	*(int16_t *)y =
		r->to_even != 0u
			? tinyml_narrow_s64_once(acc, r->multiplier, r->shift, INT16_MIN, INT16_MAX)
			: tinyml_narrow_s64(acc, r->multiplier, r->shift, INT16_MIN, INT16_MAX);
}

void tinyml_play_matmul_f32(const struct tinyml_play *play)
{
	play_matmul_all(play, 4, play_matmul_one_f32);
}

void tinyml_play_matmul_s32(const struct tinyml_play *play)
{
	play_matmul_all(play, 4, play_matmul_one_s32);
}

void tinyml_play_matmul_s8(const struct tinyml_play *play)
{
	play_matmul_all(play, 1, play_matmul_one_s8);
}

void tinyml_play_matmul_s16(const struct tinyml_play *play)
{
	play_matmul_all(play, 2, play_matmul_one_s16);
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

uint32_t tinyml_check_matmul_s16(struct tinyml_check *check)
{
	const struct tinyml_play_matmul_s8 *r = check->record;

	tinyml_check_that(check, r->multiplier >= 0 && r->shift >= -31 && r->shift <= 14);
	return play_matmul_check(check, 2);
}
