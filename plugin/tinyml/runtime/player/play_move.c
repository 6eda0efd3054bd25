/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Elements that change their places: slices, transposes, borders. */

#include <string.h>

#include "nest.h"

/* The innermost loop, for elements of each size. */
static void play_move_run(const struct tinyml_play_move *r, const uint8_t *from, uint8_t *to)
{
	const int32_t from_step = r->from_steps[3], to_step = r->to_steps[3];
	uint32_t left = r->extents[3];

	if (r->bytes != r->unit) {
		for (; left > 0u; left--, from += from_step, to += to_step) {
			memmove(to, from, r->bytes);
		}
	} else if (r->unit == 1u) {
		for (; left > 0u; left--, from += from_step, to += to_step) {
			*to = *from;
		}
	} else if (r->unit == 2u) {
		for (; left > 0u; left--, from += from_step, to += to_step) {
			*(uint16_t *)(void *)to = *(const uint16_t *)(const void *)from;
		}
	} else {
		for (; left > 0u; left--, from += from_step, to += to_step) {
			*(uint32_t *)(void *)to = *(const uint32_t *)(const void *)from;
		}
	}
}

void tinyml_play_move(const struct tinyml_play *play)
{
	const struct tinyml_play_move *r = play->record;
	const uint8_t *from0 = (const uint8_t *)play->operand[0] + r->from_start;
	uint8_t *to0 = (uint8_t *)play->operand[1] + r->to_start;

	for (uint32_t i = r->extents[0]; i > 0u; i--) {
		const uint8_t *from1 = from0;
		uint8_t *to1 = to0;

		for (uint32_t j = r->extents[1]; j > 0u; j--) {
			const uint8_t *from2 = from1;
			uint8_t *to2 = to1;

			for (uint32_t k = r->extents[2]; k > 0u; k--) {
				play_move_run(r, from2, to2);
				from2 += r->from_steps[2];
				to2 += r->to_steps[2];
			}
			from1 += r->from_steps[1];
			to1 += r->to_steps[1];
		}
		from0 += r->from_steps[0];
		to0 += r->to_steps[0];
	}
}

/* All steps keep the alignment of elements. */
static bool play_move_aligned(const int32_t *steps, uint32_t start, uint32_t unit)
{
	uint32_t all = start;

	for (int i = 0; i < TINYML_PLAY_LOOPS; i++) {
		all |= (uint32_t)steps[i];
	}
	return (all & (unit - 1u)) == 0u;
}

uint32_t tinyml_check_move(struct tinyml_check *check)
{
	const struct tinyml_play_move *r = check->record;
	const uint32_t count = tinyml_check_loops(check, r->extents);

	tinyml_check_that(check, (r->unit == 1u || r->unit == 2u || r->unit == 4u) &&
					 play_move_aligned(r->from_steps, r->from_start, r->unit) &&
					 play_move_aligned(r->to_steps, r->to_start, r->unit));
	if (check->wrong) {
		return 0;
	}
	tinyml_check_reads(
		check, 0,
		tinyml_check_span(check, r->extents, r->from_steps, r->from_start, r->bytes),
		r->unit);
	tinyml_check_writes(
		check, 1, tinyml_check_span(check, r->extents, r->to_steps, r->to_start, r->bytes),
		r->unit);
	return tinyml_check_times(count, tinyml_check_plus(r->bytes, 1));
}

void tinyml_play_fill_loops(const struct tinyml_play *play)
{
	const struct tinyml_play_fill_loops *r = play->record;
	uint8_t *to0 = (uint8_t *)play->operand[0] + r->start;

	for (uint32_t i = r->extents[0]; i > 0u; i--, to0 += r->steps[0]) {
		uint8_t *to1 = to0;

		for (uint32_t j = r->extents[1]; j > 0u; j--, to1 += r->steps[1]) {
			uint8_t *to2 = to1;

			for (uint32_t k = r->extents[2]; k > 0u; k--, to2 += r->steps[2]) {
				uint8_t *to3 = to2;

				for (uint32_t l = r->extents[3]; l > 0u; l--, to3 += r->steps[3]) {
					memcpy(to3, &r->value, r->bytes);
				}
			}
		}
	}
}

uint32_t tinyml_check_fill_loops(struct tinyml_check *check)
{
	const struct tinyml_play_fill_loops *r = check->record;
	const uint32_t count = tinyml_check_loops(check, r->extents);

	tinyml_check_that(check, r->bytes <= sizeof(r->value));
	tinyml_check_writes(check, 0,
			    tinyml_check_span(check, r->extents, r->steps, r->start, r->bytes), 1);
	return tinyml_check_times(count, 2);
}
