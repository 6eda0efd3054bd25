/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Reductions of float along axes, and normalisation. */

#include <math.h>
#include <tinyml/maths.h>
#include <tinyml/tinyml.h> /* INFINITY, which <math.h> of Zephyr's minimal libc lacks */

#include "nest.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* What a reduction does with an element; the second number is the reduction's own. */
typedef float play_reduce_f32_step(float acc, float v, float own);

/* Loops over the elements that become one. `step` is known where this is inlined. */
static ALWAYS_INLINE float play_reduce_f32_each(const uint32_t *extents, const int32_t *steps,
						const float *x, float acc, float own,
						play_reduce_f32_step *step)
{
	for (uint32_t i = extents[0]; i > 0u; i--, x += steps[0]) {
		const float *x1 = x;

		for (uint32_t j = extents[1]; j > 0u; j--, x1 += steps[1]) {
			const float *x2 = x1;

			for (uint32_t k = extents[2]; k > 0u; k--, x2 += steps[2]) {
				const float *at = x2;

				for (uint32_t l = extents[3]; l > 0u; l--, at += steps[3]) {
					acc = step(acc, *at, own);
				}
			}
		}
	}
	return acc;
}

typedef float play_reduce_f32_term(float v, float own);

/* A sum that keeps what rounding loses. */
static ALWAYS_INLINE float play_reduce_f32_long_sum(const struct tinyml_play_reduce_f32 *r,
						    const float *x, float own,
						    play_reduce_f32_term *term)
{
	uint32_t turn[TINYML_PLAY_LOOPS] = {0}, at = 0;
	float acc = 0.0f, lost = 0.0f;

	do {
		const float more = term(x[(int32_t)at], own) - lost;
		const float next = acc + more;

		lost = (next - acc) - more;
		acc = next;
		at = tinyml_play_next(turn, r->inner_extents, r->inner_steps, at);
	} while ((turn[0] | turn[1] | turn[2] | turn[3]) != 0u);
	return acc;
}

static ALWAYS_INLINE float play_reduce_f32_larger(float acc, float v, float own)
{
	(void)own;
	return v > acc || v != v ? v : acc; /* what is not a number wins */
}

static ALWAYS_INLINE float play_reduce_f32_smaller(float acc, float v, float own)
{
	(void)own;
	return v < acc || v != v ? v : acc;
}

static ALWAYS_INLINE float play_reduce_f32_product(float acc, float v, float own)
{
	(void)own;
	return acc * v;
}

/* From the elements to the result. */
typedef float play_reduce_f32_one(const struct tinyml_play_reduce_f32 *r, const float *x);

static ALWAYS_INLINE void play_reduce_f32_all(const struct tinyml_play *play,
					      play_reduce_f32_one *one)
{
	const struct tinyml_play_reduce_f32 *r = play->record;
	const float *const x = play->operand[0];
	float *y = play->operand[1];
	uint32_t turn[TINYML_PLAY_LOOPS] = {0}, at = 0;

	do {
		*y++ = one(r, x + (int32_t)at);
		at = tinyml_play_next(turn, r->extents, r->steps, at);
	} while ((turn[0] | turn[1] | turn[2] | turn[3]) != 0u);
}

/* A reduction that is a sum of `term`s, and what is made of the sum. */
#define SUMS(name, term_value, start_value, result)                                                \
	static ALWAYS_INLINE float play_reduce_f32_##name##_term(float v, float own)               \
	{                                                                                          \
		(void)own;                                                                         \
		return term_value;                                                                 \
	}                                                                                          \
	static ALWAYS_INLINE float play_reduce_f32_##name##_step(float acc, float v, float own)    \
	{                                                                                          \
		(void)own;                                                                         \
		return acc + (term_value);                                                         \
	}                                                                                          \
	static float play_reduce_f32_##name(const struct tinyml_play_reduce_f32 *r,                \
					    const float *x)                                        \
	{                                                                                          \
		const float own = start_value;                                                     \
		const float acc =                                                                  \
			r->compensated != 0u                                                       \
				? play_reduce_f32_long_sum(r, x, own,                              \
							   play_reduce_f32_##name##_term)          \
				: play_reduce_f32_each(r->inner_extents, r->inner_steps, x, 0.0f,  \
						       own, play_reduce_f32_##name##_step);        \
                                                                                                   \
		(void)own;                                                                         \
		return result;                                                                     \
	}                                                                                          \
	void tinyml_play_reduce_##name##_f32(const struct tinyml_play *play)                       \
	{                                                                                          \
		play_reduce_f32_all(play, play_reduce_f32_##name);                                 \
	}

/* What exponentials are relative to: the largest element, unless it is infinite. */
static float play_reduce_f32_shift(const struct tinyml_play_reduce_f32 *r, const float *x)
{
	const float top = play_reduce_f32_each(r->inner_extents, r->inner_steps, x, -INFINITY, 0.0f,
					       play_reduce_f32_larger);

	return tinyml_fabsf(top) < INFINITY ? top : 0.0f;
}

SUMS(sum, v, 0.0f, acc)
SUMS(mean, v, 0.0f, acc / r->count)
SUMS(l1, tinyml_fabsf(v), 0.0f, acc)
SUMS(l2, v *v, 0.0f, tinyml_sqrtf(acc))
SUMS(sum_square, v *v, 0.0f, acc)
SUMS(log_sum, v, 0.0f, tinyml_logf(acc))
SUMS(log_sum_exp, tinyml_expf(v - own), play_reduce_f32_shift(r, x), tinyml_logf(acc) + own)

/* A reduction that is no sum. */
#define FOLD(name, start, step)                                                                    \
	static float play_reduce_f32_##name(const struct tinyml_play_reduce_f32 *r,                \
					    const float *x)                                        \
	{                                                                                          \
		return play_reduce_f32_each(r->inner_extents, r->inner_steps, x, start, 0.0f,      \
					    play_reduce_f32_##step);                               \
	}                                                                                          \
	void tinyml_play_reduce_##name##_f32(const struct tinyml_play *play)                       \
	{                                                                                          \
		play_reduce_f32_all(play, play_reduce_f32_##name);                                 \
	}

FOLD(prod, 1.0f, product)
FOLD(max, -INFINITY, larger)
FOLD(min, INFINITY, smaller)

/* The elements that two nests reach together. */
static uint32_t play_reduce_f32_reach(struct tinyml_check *check, const uint32_t *extents,
				      const int32_t *steps, const uint32_t *inner_extents,
				      const int32_t *inner_steps)
{
	const uint32_t last = tinyml_check_elements(check, extents, steps, 1);
	const uint32_t inner = tinyml_check_elements(check, inner_extents, inner_steps, 1);

	return tinyml_check_times(tinyml_check_plus(last, inner) - 1u, 4);
}

uint32_t tinyml_check_reduce_f32(struct tinyml_check *check)
{
	const struct tinyml_play_reduce_f32 *r = check->record;
	const uint32_t outputs = tinyml_check_loops(check, r->extents);
	const uint32_t terms = tinyml_check_loops(check, r->inner_extents);

	if (check->wrong) {
		return 0;
	}
	tinyml_check_reads(check, 0,
			   play_reduce_f32_reach(check, r->extents, r->steps, r->inner_extents,
						 r->inner_steps),
			   4);
	tinyml_check_writes(check, 1, tinyml_check_times(outputs, 4), 4);
	return tinyml_check_times(outputs, tinyml_check_plus(tinyml_check_times(terms, 16), 1));
}
