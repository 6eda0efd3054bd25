/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Elements, or blocks of bytes, that tables name: enlarged images, reflected borders. */

#include <string.h>

#include "nest.h"

/* How far entry `i` of an axis is from the beginning; what a table has is limited, so that the
 * check need not read it. */
static inline uint32_t play_take_offset(const struct tinyml_play *play, int axis, uint32_t i)
{
	const struct tinyml_play_take *r = play->record;
	const uint32_t *table = (const void *)(play->image + r->tables[axis]);

	if (r->tables[axis] == 0u) {
		return i * r->steps[axis];
	}
	return table[i] < r->steps[axis] ? table[i] : r->steps[axis];
}

void tinyml_play_take(const struct tinyml_play *play)
{
	const struct tinyml_play_take *r = play->record;
	const uint8_t *const from = (const uint8_t *)play->operand[0] + r->start;
	uint8_t *to = play->operand[1];

	for (uint32_t i = 0; i < r->extents[0]; i++) {
		const uint32_t at0 = play_take_offset(play, 0, i);

		for (uint32_t j = 0; j < r->extents[1]; j++) {
			const uint32_t at1 = at0 + play_take_offset(play, 1, j);

			for (uint32_t k = 0; k < r->extents[2]; k++) {
				const uint32_t at2 = at1 + play_take_offset(play, 2, k);

				for (uint32_t l = 0; l < r->extents[3]; l++) {
					memcpy(to, from + at2 + play_take_offset(play, 3, l),
					       r->bytes);
					to += r->bytes;
				}
			}
		}
	}
}

/* The largest offset along an axis. */
static uint32_t play_take_reach(struct tinyml_check *check, int axis)
{
	const struct tinyml_play_take *r = check->record;
	const uint32_t count = r->extents[axis];

	if (r->tables[axis] == 0u) {
		return tinyml_check_times(count - 1u, r->steps[axis]);
	}
	tinyml_check_constants(check, r->tables[axis], tinyml_check_times(count, 4), 4);
	return r->steps[axis];
}

uint32_t tinyml_check_take(struct tinyml_check *check)
{
	const struct tinyml_play_take *r = check->record;
	const uint32_t count = tinyml_check_loops(check, r->extents);
	uint32_t end = tinyml_check_plus(r->start, r->bytes);

	if (check->wrong) {
		return 0;
	}
	for (int axis = 0; axis < TINYML_PLAY_LOOPS; axis++) {
		end = tinyml_check_plus(end, play_take_reach(check, axis));
	}
	tinyml_check_reads(check, 0, end, 1);
	tinyml_check_writes(check, 1, tinyml_check_times(count, r->bytes), 1);
	return tinyml_check_times(count, tinyml_check_plus(r->bytes, 4));
}
