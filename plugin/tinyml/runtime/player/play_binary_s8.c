/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Functions of two int8 tensors, one of which may repeat along axes. */

#include <tinyml/fixed_point.h>

#include "nest.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

typedef int32_t play_binary_s8_one(const struct tinyml_play_binary_s8 *r, int32_t a, int32_t b);

/* All elements; `one` is known where this is inlined. */
static ALWAYS_INLINE void play_binary_s8_all(const struct tinyml_play *play,
					     play_binary_s8_one *one)
{
	const struct tinyml_play_binary_s8 *r = play->record;
	const int32_t a_step = r->a_steps[3], b_step = r->b_steps[3];
	const int8_t *a0 = play->operand[0], *b0 = play->operand[1];
	int8_t *y = play->operand[2];

	for (uint32_t i = r->extents[0]; i > 0u; i--, a0 += r->a_steps[0], b0 += r->b_steps[0]) {
		const int8_t *a1 = a0, *b1 = b0;

		for (uint32_t j = r->extents[1]; j > 0u;
		     j--, a1 += r->a_steps[1], b1 += r->b_steps[1]) {
			const int8_t *a2 = a1, *b2 = b1;

			for (uint32_t k = r->extents[2]; k > 0u;
			     k--, a2 += r->a_steps[2], b2 += r->b_steps[2]) {
				const int8_t *a = a2, *b = b2;

				for (uint32_t l = r->extents[3]; l > 0u; l--) {
					*y++ = (int8_t)tinyml_clamp(one(r, *a, *b), r->out_min,
								    r->out_max);
					a += a_step;
					b += b_step;
				}
			}
		}
	}
}

static ALWAYS_INLINE int32_t play_binary_s8_linear(const struct tinyml_play_binary_s8 *r, int32_t a,
						   int32_t b)
{
	const int32_t products = tinyml_play_plus(tinyml_play_times(a, r->a_factor),
						  tinyml_play_times(b, r->b_factor));

	return tinyml_play_plus(products, r->y_factor) >> r->y_shift;
}

static ALWAYS_INLINE int32_t play_binary_s8_mul(const struct tinyml_play_binary_s8 *r, int32_t a,
						int32_t b)
{
	const int32_t product = (a - r->a_zero) * (b - r->b_zero);

	return tinyml_play_plus(tinyml_rescale(product, r->y_factor, r->y_shift), r->out_zero);
}

static ALWAYS_INLINE int32_t play_binary_s8_mul_once(const struct tinyml_play_binary_s8 *r,
						     int32_t a, int32_t b)
{
	const int32_t product = (a - r->a_zero) * (b - r->b_zero);

	return tinyml_play_plus(tinyml_rescale_to_even(product, r->y_factor, r->y_shift),
				r->out_zero);
}

static ALWAYS_INLINE int32_t play_binary_s8_prelu(const struct tinyml_play_binary_s8 *r, int32_t a,
						  int32_t b)
{
	a -= r->a_zero;
	a = a >= 0 ? tinyml_rescale(a, r->a_factor, r->a_shift)
		   : tinyml_rescale(a * (b - r->b_zero), r->y_factor, r->y_shift);
	return tinyml_play_plus(a, r->out_zero);
}

static ALWAYS_INLINE int32_t play_binary_s8_prelu_once(const struct tinyml_play_binary_s8 *r,
						       int32_t a, int32_t b)
{
	a -= r->a_zero;
	a = a >= 0 ? tinyml_rescale_to_even(a, r->a_factor, r->a_shift)
		   : tinyml_rescale_to_even(a * (b - r->b_zero), r->y_factor, r->y_shift);
	return tinyml_play_plus(a, r->out_zero);
}

/* Three rescales; a difference is a sum whose second operand counts `sign` times. */
static ALWAYS_INLINE int32_t play_binary_s8_sum(const struct tinyml_play_binary_s8 *r, int32_t a,
						int32_t b)
{
	const int32_t raised = (int32_t)(1u << r->headroom);

	a = tinyml_rescale(tinyml_play_times(a - r->a_zero, raised), r->a_factor, r->a_shift);
	b = tinyml_rescale(tinyml_play_times(b - r->b_zero, raised), r->b_factor, r->b_shift);
	a = tinyml_play_plus(a, tinyml_play_times(b, r->sign));
	return tinyml_play_plus(tinyml_rescale(a, r->y_factor, r->y_shift), r->out_zero);
}

static ALWAYS_INLINE int32_t play_binary_s8_squared(const struct tinyml_play_binary_s8 *r,
						    int32_t a, int32_t b)
{
	const int32_t raised = (int32_t)(1u << r->headroom);

	a = tinyml_rescale(tinyml_play_times(a - r->a_zero, raised), r->a_factor, r->a_shift);
	b = tinyml_rescale(tinyml_play_times(b - r->b_zero, raised), r->b_factor, r->b_shift);
	a = tinyml_play_plus(a, tinyml_play_times(b, -1));
	return tinyml_play_plus(tinyml_rescale(tinyml_play_times(a, a), r->y_factor, r->y_shift),
				r->out_zero);
}

static ALWAYS_INLINE int32_t play_binary_s8_sum_once(const struct tinyml_play_binary_s8 *r,
						     int32_t a, int32_t b)
{
	a -= r->a_zero;
	b -= r->b_zero;
	const int64_t sum = (int64_t)a * r->a_factor + (int64_t)b * r->b_factor;
	const int32_t slack = (a < 0 ? -a : a) + (b < 0 ? -b : b);

	return tinyml_play_plus(tinyml_shift_right_to_even(sum, r->headroom, slack), r->out_zero);
}

static ALWAYS_INLINE int32_t play_binary_s8_max(const struct tinyml_play_binary_s8 *r, int32_t a,
						int32_t b)
{
	(void)r;
	return a > b ? a : b;
}

static ALWAYS_INLINE int32_t play_binary_s8_min(const struct tinyml_play_binary_s8 *r, int32_t a,
						int32_t b)
{
	(void)r;
	return a < b ? a : b;
}

void tinyml_play_linear_s8(const struct tinyml_play *play)
{
	play_binary_s8_all(play, play_binary_s8_linear);
}

void tinyml_play_mul_s8(const struct tinyml_play *play)
{
	play_binary_s8_all(play, play_binary_s8_mul);
}

void tinyml_play_mul_once_s8(const struct tinyml_play *play)
{
	play_binary_s8_all(play, play_binary_s8_mul_once);
}

void tinyml_play_prelu_s8(const struct tinyml_play *play)
{
	play_binary_s8_all(play, play_binary_s8_prelu);
}

void tinyml_play_prelu_once_s8(const struct tinyml_play *play)
{
	play_binary_s8_all(play, play_binary_s8_prelu_once);
}

void tinyml_play_rescaled_sum_s8(const struct tinyml_play *play)
{
	play_binary_s8_all(play, play_binary_s8_sum);
}

void tinyml_play_squared_s8(const struct tinyml_play *play)
{
	play_binary_s8_all(play, play_binary_s8_squared);
}

void tinyml_play_sum_once_s8(const struct tinyml_play *play)
{
	play_binary_s8_all(play, play_binary_s8_sum_once);
}

void tinyml_play_max_s8(const struct tinyml_play *play)
{
	play_binary_s8_all(play, play_binary_s8_max);
}

void tinyml_play_min_s8(const struct tinyml_play *play)
{
	play_binary_s8_all(play, play_binary_s8_min);
}

static uint32_t play_binary_s8_check(struct tinyml_check *check, uint32_t work)
{
	const struct tinyml_play_binary_s8 *r = check->record;
	const uint32_t count = tinyml_check_loops(check, r->extents);

	if (check->wrong) {
		return 0;
	}
	tinyml_check_reads(check, 0, tinyml_check_elements(check, r->extents, r->a_steps, 1), 1);
	tinyml_check_reads(check, 1, tinyml_check_elements(check, r->extents, r->b_steps, 1), 1);
	tinyml_check_writes(check, 2, count, 1);
	return tinyml_check_times(count, work);
}

uint32_t tinyml_check_binary_s8(struct tinyml_check *check)
{
	const struct tinyml_play_binary_s8 *r = check->record;

	tinyml_check_that(check, tinyml_check_factor(r->a_factor, r->a_shift) &&
					 tinyml_check_factor(r->b_factor, r->b_shift) &&
					 tinyml_check_factor(r->y_factor, r->y_shift) &&
					 r->headroom <= 30u);
	return play_binary_s8_check(check, 4);
}

uint32_t tinyml_check_linear_s8(struct tinyml_check *check)
{
	const struct tinyml_play_binary_s8 *r = check->record;

	tinyml_check_that(check, r->y_shift >= 0 && r->y_shift <= 31);
	return play_binary_s8_check(check, 4);
}

uint32_t tinyml_check_sum_once_s8(struct tinyml_check *check)
{
	const struct tinyml_play_binary_s8 *r = check->record;

	tinyml_check_that(check, r->headroom >= 1u && r->headroom <= 62u);
	return play_binary_s8_check(check, 4);
}
