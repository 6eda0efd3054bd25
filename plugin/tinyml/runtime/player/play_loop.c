/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Loops: a body that is played again, and a condition that a run decides. */

#include <tinyml/play_loop.h>

#include "program.h"

void tinyml_play_loop(const struct tinyml_play *play)
{
	struct player_place *const place = (void *)(uintptr_t)play;
	void *operand[TINYML_PLAY_OPERANDS];
	const struct tinyml_play_loop *loop;
	const uint32_t *call = place->at, *body;
	uint32_t level = place->level, turn = 0;
	bool more;

	if (place->at == place->end) { /* of a turn */
		place->level = --level;
		call = place->loops[level].call;
		place->end = place->loops[level].end;
		turn = place->turn[level + 1u] + 1u;
	}
	loop = (const void *)(place->image + call[1]);
	body = tinyml_player_operands(place, call, operand);
	more = operand[0] == NULL || (*(const uint8_t *)operand[0] == 0u) == (loop->unless != 0u);
	if (more && turn < loop->turns) {
		place->loops[level].call = call;
		place->loops[level].end = place->end;
		place->level = level + 1u;
		place->turn[level + 1u] = turn;
		place->end = body + loop->words;
		place->at = body;
	} else {
		place->at = more && loop->bounded != 0u ? NULL : body + loop->words;
	}
}

/* A body ends, and the bodies that end with it: each is played in all turns. */
static void play_loop_leave(struct tinyml_check *check)
{
	for (; check->left == 0u && check->level != 0u; check->level--) {
		const uint32_t level = check->level - 1u;

		check->left = check->loops[level].left;
		check->work = tinyml_check_plus(
			check->loops[level].work,
			tinyml_check_times(check->work, check->loops[level].turns));
	}
}

/* Whether a call that touches so many bytes of an operand is inside in all turns of the loops
 * around it, whose steps may be negative. It is in the first ones. */
static void play_loop_around(struct tinyml_check *check, uint32_t operand, uint32_t bytes,
			     uint32_t alignment)
{
	const uint32_t word = check->operands[operand], position = OPERAND_POSITION(word);
	uint32_t before = 0;

	for (uint32_t level = 0; check->steps != NULL && level < check->level; level++) {
		const uint32_t step = check->steps[(level + 1u) * check->count + operand];
		const uint32_t turns = check->loops[level].turns - 1u;

		tinyml_check_that(check, (step & (alignment - 1u)) == 0u);
		if (step > INT32_MAX) {
			before = tinyml_check_plus(before, tinyml_check_times(0u - step, turns));
		} else {
			bytes = tinyml_check_plus(bytes, tinyml_check_times(step, turns));
		}
	}
	tinyml_check_that(check, before <= position && bytes <= INT32_MAX &&
					 bytes <= check->bytes[OPERAND_MEMORY(word)] - position);
}

uint32_t tinyml_check_loop(struct tinyml_check *check)
{
	const struct tinyml_play_loop *loop = check->record;
	const uint32_t level = check->level;

	if (!tinyml_check_nothing(check, 0)) {
		tinyml_check_reads(check, 0, 1, 1);
	}
	tinyml_check_that(check, check->repeated == 0u && level < TINYML_PLAY_NESTED_LOOPS &&
					 loop->turns > 0u && loop->words > 0u &&
					 loop->words <= check->left);
	if (check->wrong) {
		return 0;
	}
	check->loops[level].turns = loop->turns;
	check->loops[level].work = check->work;
	check->loops[level].left = check->left - loop->words;
	check->level = level + 1u;
	check->leave = play_loop_leave;
	check->around = play_loop_around;
	check->left = loop->words;
	check->work = 0;
	return 0;
}
