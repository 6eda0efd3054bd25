/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The place of the largest or the smallest element along an axis. */

#include "types.h"

#include "nest.h"

/* Whether the element at `place` is better than the one at `best`. */
#define BETTER(kind)                                                                               \
	do {                                                                                       \
		const kind a = ((const kind *)x)[k * r->step];                                     \
		const kind b = ((const kind *)x)[best * r->step];                                  \
                                                                                                   \
		better = r->largest != 0u ? (r->last != 0u ? a >= b : a > b)                       \
					  : (r->last != 0u ? a <= b : a < b);                      \
	} while (0)

static uint32_t play_arg_reduce_best(const struct tinyml_play_arg_reduce *r, const void *x)
{
	uint32_t best = 0;

	for (uint32_t k = 1; k < r->depth; k++) {
		bool better;

		switch (r->from) {
		case TINYML_FLOAT32:
			BETTER(float);
			break;
		case TINYML_INT8:
			BETTER(int8_t);
			break;
		case TINYML_UINT8:
			BETTER(uint8_t);
			break;
		case TINYML_INT16:
			BETTER(int16_t);
			break;
		default:
			BETTER(int32_t);
			break;
		}
		best = better ? k : best;
	}
	return best;
}

void tinyml_play_arg_reduce(const struct tinyml_play *play)
{
	const struct tinyml_play_arg_reduce *r = play->record;
	const uint8_t *const x = play->operand[0];
	const uint32_t size = tinyml_play_type_bytes(r->from);
	uint32_t turn[TINYML_PLAY_LOOPS] = {0}, at = 0;
	int32_t *narrow = play->operand[1];
	int64_t *wide = play->operand[1];

	do {
		const uint32_t best = play_arg_reduce_best(r, x + (int32_t)at * (int32_t)size);

		if (r->to == TINYML_INT32) {
			*narrow++ = (int32_t)best;
		} else {
			*wide++ = best;
		}
		at = tinyml_play_next(turn, r->extents, r->steps, at);
	} while ((turn[0] | turn[1] | turn[2] | turn[3]) != 0u);
}

uint32_t tinyml_check_arg_reduce(struct tinyml_check *check)
{
	const struct tinyml_play_arg_reduce *r = check->record;
	const uint32_t outputs = tinyml_check_loops(check, r->extents);
	uint32_t size, reach;

	tinyml_check_that(check, r->depth > 0u &&
					 (r->from == TINYML_FLOAT32 || r->from == TINYML_INT8 ||
					  r->from == TINYML_UINT8 || r->from == TINYML_INT16 ||
					  r->from == TINYML_INT32) &&
					 (r->to == TINYML_INT32 || r->to == TINYML_INT64));
	if (check->wrong) {
		return 0;
	}
	size = tinyml_play_type_bytes(r->from);
	reach = tinyml_check_plus(tinyml_check_elements(check, r->extents, r->steps, 1),
				  tinyml_check_times(r->depth - 1u, r->step));
	tinyml_check_reads(check, 0, tinyml_check_times(reach, size), size);
	size = tinyml_play_type_bytes(r->to);
	tinyml_check_writes(check, 1, tinyml_check_times(outputs, size), size);
	return tinyml_check_times(outputs, tinyml_check_plus(tinyml_check_times(r->depth, 4), 1));
}
