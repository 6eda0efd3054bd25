/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Functions of two quantised tensors, one of which may repeat along axes: included for each type of
 * elements, which is BINARY_TYPE. */

#ifndef BINARY_TYPE
#error "define BINARY_TYPE first"
#endif

#include <tinyml/fixed_point.h>

#include "nest.h"

#define BINARY_INLINE inline __attribute__((always_inline))

typedef int32_t binary_fixed_one(const struct tinyml_play_binary_s8 *r, int32_t a, int32_t b);

/* All elements; `one` is known where this is inlined. */
static BINARY_INLINE void binary_fixed_all(const struct tinyml_play *play, binary_fixed_one *one)
{
	/* A copy, which a byte that is written cannot change: it stays in registers. */
	const struct tinyml_play_binary_s8 record =
		*(const struct tinyml_play_binary_s8 *)play->record;
	const struct tinyml_play_binary_s8 *const r = &record;
	const int32_t a_step = r->a_steps[3], b_step = r->b_steps[3];
	const BINARY_TYPE *a0 = play->operand[0], *b0 = play->operand[1];
	BINARY_TYPE *y = play->operand[2];

	for (uint32_t i = r->extents[0]; i > 0u; i--, a0 += r->a_steps[0], b0 += r->b_steps[0]) {
		const BINARY_TYPE *a1 = a0, *b1 = b0;

		for (uint32_t j = r->extents[1]; j > 0u;
		     j--, a1 += r->a_steps[1], b1 += r->b_steps[1]) {
			const BINARY_TYPE *a2 = a1, *b2 = b1;

			for (uint32_t k = r->extents[2]; k > 0u;
			     k--, a2 += r->a_steps[2], b2 += r->b_steps[2]) {
				const BINARY_TYPE *a = a2, *b = b2;

				for (uint32_t l = r->extents[3]; l > 0u; l--) {
					*y++ = (BINARY_TYPE)tinyml_clamp(one(r, *a, *b), r->out_min,
									 r->out_max);
					a += a_step;
					b += b_step;
				}
			}
		}
	}
}

static BINARY_INLINE __attribute__((unused)) int32_t
binary_fixed_linear(const struct tinyml_play_binary_s8 *r, int32_t a, int32_t b)
{
	const int32_t products = tinyml_play_plus(tinyml_play_times(a, r->a_factor),
						  tinyml_play_times(b, r->b_factor));

	return tinyml_play_plus(products, r->y_factor) >> r->y_shift;
}

static BINARY_INLINE int32_t binary_fixed_mul(const struct tinyml_play_binary_s8 *r, int32_t a,
					      int32_t b)
{
	const int32_t product = (a - r->a_zero) * (b - r->b_zero);

	return tinyml_play_plus(tinyml_rescale(product, r->y_factor, r->y_shift), r->out_zero);
}

static BINARY_INLINE int32_t binary_fixed_mul_once(const struct tinyml_play_binary_s8 *r, int32_t a,
						   int32_t b)
{
	const int32_t product = (a - r->a_zero) * (b - r->b_zero);

	return tinyml_play_plus(tinyml_rescale_to_even(product, r->y_factor, r->y_shift),
				r->out_zero);
}

static BINARY_INLINE int32_t binary_fixed_prelu(const struct tinyml_play_binary_s8 *r, int32_t a,
						int32_t b)
{
	a -= r->a_zero;
	a = a >= 0 ? tinyml_rescale(a, r->a_factor, r->a_shift)
		   : tinyml_rescale(a * (b - r->b_zero), r->y_factor, r->y_shift);
	return tinyml_play_plus(a, r->out_zero);
}

static BINARY_INLINE int32_t binary_fixed_prelu_once(const struct tinyml_play_binary_s8 *r,
						     int32_t a, int32_t b)
{
	a -= r->a_zero;
	a = a >= 0 ? tinyml_rescale_to_even(a, r->a_factor, r->a_shift)
		   : tinyml_rescale_to_even(a * (b - r->b_zero), r->y_factor, r->y_shift);
	return tinyml_play_plus(a, r->out_zero);
}

/* Three rescales; a difference is a sum whose second operand counts `sign` times. */
static BINARY_INLINE int32_t binary_fixed_sum(const struct tinyml_play_binary_s8 *r, int32_t a,
					      int32_t b)
{
	const int32_t raised = (int32_t)(1u << r->headroom);

	a = tinyml_rescale(tinyml_play_times(a - r->a_zero, raised), r->a_factor, r->a_shift);
	b = tinyml_rescale(tinyml_play_times(b - r->b_zero, raised), r->b_factor, r->b_shift);
	a = tinyml_play_plus(a, tinyml_play_times(b, r->sign));
	return tinyml_play_plus(tinyml_rescale(a, r->y_factor, r->y_shift), r->out_zero);
}

static BINARY_INLINE int32_t binary_fixed_squared(const struct tinyml_play_binary_s8 *r, int32_t a,
						  int32_t b)
{
	const int32_t raised = (int32_t)(1u << r->headroom);

	a = tinyml_rescale(tinyml_play_times(a - r->a_zero, raised), r->a_factor, r->a_shift);
	b = tinyml_rescale(tinyml_play_times(b - r->b_zero, raised), r->b_factor, r->b_shift);
	a = tinyml_play_plus(a, tinyml_play_times(b, -1));
	return tinyml_play_plus(tinyml_rescale(tinyml_play_times(a, a), r->y_factor, r->y_shift),
				r->out_zero);
}

static BINARY_INLINE int32_t binary_fixed_sum_once(const struct tinyml_play_binary_s8 *r, int32_t a,
						   int32_t b)
{
	a -= r->a_zero;
	b -= r->b_zero;
	const int64_t sum = (int64_t)a * r->a_factor + (int64_t)b * r->b_factor;
	const int32_t slack = (a < 0 ? -a : a) + (b < 0 ? -b : b);

	return tinyml_play_plus(tinyml_shift_right_to_even(sum, r->headroom, slack), r->out_zero);
}

static BINARY_INLINE int32_t binary_fixed_max(const struct tinyml_play_binary_s8 *r, int32_t a,
					      int32_t b)
{
	(void)r;
	return a > b ? a : b;
}

static BINARY_INLINE int32_t binary_fixed_min(const struct tinyml_play_binary_s8 *r, int32_t a,
					      int32_t b)
{
	(void)r;
	return a < b ? a : b;
}

/* A function that the player calls, each of its own, so that firmware links what its models use. */
#define BINARY(name, one)                                                                          \
	void tinyml_play_##name(const struct tinyml_play *play)                                    \
	{                                                                                          \
		binary_fixed_all(play, binary_fixed_##one);                                        \
	}

/* What all checks state. */
static inline uint32_t binary_fixed_check(struct tinyml_check *check)
{
	const struct tinyml_play_binary_s8 *r = check->record;
	const uint32_t size = sizeof(BINARY_TYPE), count = tinyml_check_loops(check, r->extents);

	if (check->wrong) {
		return 0;
	}
	tinyml_check_reads(check, 0, tinyml_check_elements(check, r->extents, r->a_steps, size),
			   size);
	tinyml_check_reads(check, 1, tinyml_check_elements(check, r->extents, r->b_steps, size),
			   size);
	tinyml_check_writes(check, 2, tinyml_check_times(count, size), size);
	return tinyml_check_times(count, 4);
}

static inline uint32_t binary_fixed_check_factors(struct tinyml_check *check)
{
	const struct tinyml_play_binary_s8 *r = check->record;

	tinyml_check_that(check, tinyml_check_factor(r->a_factor, r->a_shift) &&
					 tinyml_check_factor(r->b_factor, r->b_shift) &&
					 tinyml_check_factor(r->y_factor, r->y_shift) &&
					 r->headroom <= 30u);
	return binary_fixed_check(check);
}

static inline uint32_t binary_fixed_check_sum_once(struct tinyml_check *check)
{
	const struct tinyml_play_binary_s8 *r = check->record;

	tinyml_check_that(check, r->headroom >= 1u && r->headroom <= 62u);
	return binary_fixed_check(check);
}
