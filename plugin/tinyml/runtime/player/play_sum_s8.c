/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Sums of int8 tensors of one shape: the structure has no pointers, so records are this structure.
 */

#include <tinyml/add.h>
#include <tinyml/fixed_point.h>

#include "nest.h"

static inline int8_t play_sum_one(const struct tinyml_add_s8 *r, int32_t a, int32_t b)
{
	const int32_t sum = tinyml_play_plus(tinyml_play_plus(tinyml_play_times(a, r->a_factor),
							      tinyml_play_times(b, r->b_factor)),
					     r->offset);

	return (int8_t)tinyml_clamp(sum >> r->shift, r->out_min, r->out_max);
}

/* Whether an output may be any int8, so that limits are those of one instruction on many cores. */
static bool play_sum_whole(const struct tinyml_add_s8 *r)
{
	return r->out_min == INT8_MIN && r->out_max == INT8_MAX;
}

void tinyml_play_sum_s8(const struct tinyml_play *play)
{
	const struct tinyml_add_s8 r = *(const struct tinyml_add_s8 *)play->record;
	const int8_t *a = play->operand[0], *b = play->operand[1];
	int8_t *y = play->operand[2];
	int32_t left = r.count;

	if (play_sum_whole(&r)) {
		for (; left > 0; left--) {
			const int32_t products =
				tinyml_play_plus(tinyml_play_times(*a++, r.a_factor),
						 tinyml_play_times(*b++, r.b_factor));

			*y++ = (int8_t)tinyml_saturate_s8(tinyml_play_plus(products, r.offset) >>
							  r.shift);
		}
		return;
	}
	for (; left > 0; left--) {
		*y++ = play_sum_one(&r, *a++, *b++);
	}
}

void tinyml_play_add_mve_s8(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_add_s8 *, const int8_t *, const int8_t *, int8_t *);

	((kernel *)play->kernel->function)(play->record, play->operand[0], play->operand[1],
					   play->operand[2]);
}

uint32_t tinyml_check_sum_s8(struct tinyml_check *check)
{
	const struct tinyml_add_s8 *r = check->record;
	const uint32_t count = (uint32_t)r->count;

	tinyml_check_that(check, r->count > 0 && r->shift >= 0 && r->shift < 32);
	tinyml_check_reads(check, 0, count, 1);
	tinyml_check_reads(check, 1, count, 1);
	tinyml_check_writes(check, 2, count, 1);
	return count;
}
