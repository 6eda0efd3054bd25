/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Functions of two float tensors, one of which may repeat along axes. */

#include <math.h>
#include <tinyml/tinyml.h> /* INFINITY, which <math.h> of Zephyr's minimal libc lacks */

#include "nest.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

typedef float play_binary_f32_one(float a, float b);

/* Limits of results, for few layers: others do not pay for them. */
__attribute__((noinline)) static void play_binary_f32_limit(const struct tinyml_play_binary_f32 *r,
							    float *y, const float *end)
{
	const float low = r->out_min, high = r->out_max;

	for (; y != end; y++) {
		const float v = *y, above = v < low ? low : v;

		*y = v > high ? high : above;
	}
}

/* All elements; `one` is known where this is inlined. Steps are kept in registers, because what is
 * written may be anywhere. */
static ALWAYS_INLINE void play_binary_f32_all(const struct tinyml_play *play,
					      play_binary_f32_one *one)
{
	const struct tinyml_play_binary_f32 *const r = play->record;
	const int32_t a_step = r->a_steps[3], b_step = r->b_steps[3];
	const float *a0 = play->operand[0], *b0 = play->operand[1];
	float *y = play->operand[2];

	for (uint32_t i = r->extents[0]; i > 0u; i--, a0 += r->a_steps[0], b0 += r->b_steps[0]) {
		const float *a1 = a0, *b1 = b0;

		for (uint32_t j = r->extents[1]; j > 0u;
		     j--, a1 += r->a_steps[1], b1 += r->b_steps[1]) {
			const float *a2 = a1, *b2 = b1;

			for (uint32_t k = r->extents[2]; k > 0u;
			     k--, a2 += r->a_steps[2], b2 += r->b_steps[2]) {
				const float *a = a2, *b = b2, *const end = y + r->extents[3];

				if (a_step == 1 && b_step == 1) {
					while (y != end) {
						*y++ = one(*a++, *b++);
					}
				}
				while (y != end) {
					*y++ = one(*a, *b);
					a += a_step;
					b += b_step;
				}
			}
		}
	}
	if (r->out_min > -INFINITY || r->out_max < INFINITY) {
		play_binary_f32_limit(r, play->operand[2], y);
	}
}

/* One function each, so that firmware links what its models use. */
#define BINARY(name, value)                                                                        \
	static ALWAYS_INLINE float play_binary_f32_##name(float a, float b)                        \
	{                                                                                          \
		return value;                                                                      \
	}                                                                                          \
	void tinyml_play_##name##_f32(const struct tinyml_play *play)                              \
	{                                                                                          \
		play_binary_f32_all(play, play_binary_f32_##name);                                 \
	}

BINARY(add, (a + b))
BINARY(sub, (a - b))
BINARY(mul, (a * b))
BINARY(div, (a / b))
BINARY(min, (a < b || a != a ? a : b))
BINARY(max, (a > b || a != a ? a : b))
BINARY(squared_difference, ((a - b) * (a - b)))
BINARY(prelu, (a < 0 ? a * b : a))

uint32_t tinyml_check_binary_f32(struct tinyml_check *check)
{
	const struct tinyml_play_binary_f32 *r = check->record;
	const uint32_t count = tinyml_check_loops(check, r->extents);

	if (check->wrong) {
		return 0;
	}
	tinyml_check_reads(check, 0, tinyml_check_elements(check, r->extents, r->a_steps, 4), 4);
	tinyml_check_reads(check, 1, tinyml_check_elements(check, r->extents, r->b_steps, 4), 4);
	tinyml_check_writes(check, 2, tinyml_check_times(count, 4), 4);
	return tinyml_check_times(count, 4);
}
