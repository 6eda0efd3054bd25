/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Functions of two quantised tensors, one of which may repeat along axes: included for each type of
 * elements, which is BINARY_TYPE. */

#ifndef BINARY_TYPE
#error "define BINARY_TYPE first"
#endif

#include <stddef.h>

#include <tinyml/fixed_point.h>

#include "nest.h"

#define BINARY_INLINE inline __attribute__((always_inline))

typedef int32_t binary_fixed_one(const struct tinyml_play_binary_s8 *r, int32_t a, int32_t b);

/* A row of elements; `one` is known where this is inlined, and so may be the steps. */
static BINARY_INLINE void binary_fixed_row(const struct tinyml_play_binary_s8 *r,
					   binary_fixed_one *one, const BINARY_TYPE *a,
					   const BINARY_TYPE *b, int32_t a_step, int32_t b_step,
					   BINARY_TYPE *y)
{
	const BINARY_TYPE *const end = y + r->extents[3];

	while (y != end) {
		*y++ = (BINARY_TYPE)tinyml_clamp(one(r, *a, *b), r->out_min, r->out_max);
		a += a_step;
		b += b_step;
	}
}

typedef void binary_fixed_usual_row(const struct tinyml_play_binary_s8 *r, const BINARY_TYPE *a,
				    const BINARY_TYPE *b, BINARY_TYPE *y);

/* All elements; `usual`, unless it is NULL, is for rows in which both operands move on. */
static BINARY_INLINE void binary_fixed_all(const struct tinyml_play *play, binary_fixed_one *one,
					   binary_fixed_usual_row *usual)
{
	/* A copy, which a byte that is written cannot change: it stays in registers. */
	const struct tinyml_play_binary_s8 record =
		*(const struct tinyml_play_binary_s8 *)play->record;
	const struct tinyml_play_binary_s8 *const r = &record;
	const bool together = r->a_steps[3] == 1 && r->b_steps[3] == 1;
	const BINARY_TYPE *a0 = play->operand[0], *b0 = play->operand[1];
	BINARY_TYPE *y = play->operand[2];

	for (uint32_t i = r->extents[0]; i > 0u; i--, a0 += r->a_steps[0], b0 += r->b_steps[0]) {
		const BINARY_TYPE *a1 = a0, *b1 = b0;

		for (uint32_t j = r->extents[1]; j > 0u;
		     j--, a1 += r->a_steps[1], b1 += r->b_steps[1]) {
			const BINARY_TYPE *a = a1, *b = b1;

			for (uint32_t k = r->extents[2]; k > 0u;
			     k--, a += r->a_steps[2], b += r->b_steps[2], y += r->extents[3]) {
				if (usual != NULL && together) {
					usual(play->record, a, b, y);
				} else {
					binary_fixed_row(r, one, a, b, r->a_steps[3], r->b_steps[3],
							 y);
				}
			}
		}
	}
}

/* tinyml_rescale() with a negative shift. */
static BINARY_INLINE int32_t binary_fixed_down(int32_t x, int32_t multiplier, int32_t shift)
{
	x = tinyml_doubling_high_multiply(x, multiplier);
	return (((x + (x >> 31)) >> ~shift) + 1) >> 1;
}

/* tinyml_rescale_to_even() with a negative shift: of 32 + `more` bits that are shifted out, the
 * lower word is compared as a whole. */
static BINARY_INLINE int32_t binary_fixed_down_to_even(int32_t x, int32_t multiplier, int32_t shift)
{
	const int32_t more = ~shift, slack = x < 0 ? -x : x;
	const uint32_t one = UINT32_C(1) << more;
	const int64_t raised = tinyml_wide_product(x, multiplier) + (INT64_C(1) << (31 + more));
	const uint32_t low = (uint32_t)raised;
	const int32_t high = (int32_t)(raised >> 32), rounded = high >> more;
	const uint32_t rest = (uint32_t)high & (one - 1u);

	if (rest == 0u && low <= (uint32_t)slack) {
		return rounded - (rounded & 1);
	}
	return rounded + (rest == one - 1u && 0u - low - 1u < (uint32_t)slack ? rounded & 1 : 0);
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

static BINARY_INLINE int32_t binary_fixed_common_mul(const struct tinyml_play_binary_s8 *r,
						     int32_t a, int32_t b)
{
	const int32_t product = (a - r->a_zero) * (b - r->b_zero);

	return tinyml_play_plus(binary_fixed_down(product, r->y_factor, r->y_shift), r->out_zero);
}

static BINARY_INLINE int32_t binary_fixed_common_mul_once(const struct tinyml_play_binary_s8 *r,
							  int32_t a, int32_t b)
{
	const int32_t product = (a - r->a_zero) * (b - r->b_zero);

	return tinyml_play_plus(binary_fixed_down_to_even(product, r->y_factor, r->y_shift),
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
		binary_fixed_all(play, binary_fixed_##one, NULL);                                  \
	}

/* The same with `common` for rows in which both operands move on: a function of its own, whose
 * numbers stay in registers. `shift` limits it to negative ones of the record. */
#define BINARY_COMMON(name, one, common, shift)                                                    \
	__attribute__((noinline)) static void binary_fixed_##name(                                 \
		const struct tinyml_play_binary_s8 *record, const BINARY_TYPE *a,                  \
		const BINARY_TYPE *b, BINARY_TYPE *y)                                              \
	{                                                                                          \
		const struct tinyml_play_binary_s8 r = *record;                                    \
                                                                                                   \
		binary_fixed_row(&r, binary_fixed_##common, a, b, 1, 1, y);                        \
	}                                                                                          \
	void tinyml_play_##name(const struct tinyml_play *play)                                    \
	{                                                                                          \
		const struct tinyml_play_binary_s8 *r = play->record;                              \
                                                                                                   \
		(void)r;                                                                           \
		binary_fixed_all(play, binary_fixed_##one, (shift) ? binary_fixed_##name : NULL);  \
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
