/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Functions of two float tensors, one of which may repeat along axes. */

#include "nest.h"

static inline float play_binary_f32_limited(float v, float low, float high)
{
	const float above = v < low ? low : v;

	return v > high ? high : above;
}

/* One function each, so that firmware links what its models use. */
#define BINARY(name, value)                                                                        \
	void tinyml_play_##name##_f32(const struct tinyml_play *play)                              \
	{                                                                                          \
		const struct tinyml_play_binary_f32 *r = play->record;                             \
		const float *a0 = play->operand[0], *b0 = play->operand[1];                        \
		float *y = play->operand[2];                                                       \
                                                                                                   \
		for (uint32_t i = r->extents[0]; i > 0u; i--) {                                    \
			const float *a1 = a0, *b1 = b0;                                            \
                                                                                                   \
			for (uint32_t j = r->extents[1]; j > 0u; j--) {                            \
				const float *a2 = a1, *b2 = b1;                                    \
                                                                                                   \
				for (uint32_t k = r->extents[2]; k > 0u; k--) {                    \
					const float *a3 = a2, *b3 = b2;                            \
                                                                                                   \
					for (uint32_t l = r->extents[3]; l > 0u; l--) {            \
						const float a = *a3, b = *b3, v = value;           \
                                                                                                   \
						*y++ = play_binary_f32_limited(v, r->out_min,      \
									       r->out_max);        \
						a3 += r->a_steps[3];                               \
						b3 += r->b_steps[3];                               \
					}                                                          \
					a2 += r->a_steps[2];                                       \
					b2 += r->b_steps[2];                                       \
				}                                                                  \
				a1 += r->a_steps[1];                                               \
				b1 += r->b_steps[1];                                               \
			}                                                                          \
			a0 += r->a_steps[0];                                                       \
			b0 += r->b_steps[0];                                                       \
		}                                                                                  \
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
