/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Makes the calls of an image that is open. */

#include "program.h"

/* The address of the operand at `word`; `memory` has addresses that make up for its highest bits.
 */
static inline void *player_operand(const uintptr_t *memory, const uint32_t *word)
{
	return (void *)(memory[OPERAND_MEMORY(*word)] + *word);
}

__attribute__((noinline)) const uint32_t *tinyml_player_operands(const struct player_place *place,
								 const uint32_t *at, void **operand)
{
	const uint32_t head = at[0], count = CALL_COUNT(head);

	at += 2;
	for (uint32_t i = 0; i < count; i++) {
		operand[i] = player_operand(place->memory, at++);
	}
	if (CALL_STRIDED(head)) {
		for (uint32_t level = 0; level <= place->level; level++) {
			for (uint32_t i = 0; i < count; i++) {
				operand[i] = (uint8_t *)operand[i] +
					     (int32_t)(place->turn[level] * *at++);
			}
		}
	}
	return at;
}

/* Make calls up to `end` or to a repetition; returns where that is. Small models spend a hundredth
 * of their time here. So operands, of which kernels have seldom more than three, are not a loop. */
__attribute__((noinline)) static const uint32_t *
player_calls(const struct player_place *place, const uint32_t *at, const uint32_t *end)
{
	const uint8_t *const image = place->image;
	const struct tinyml_play_kernel *kernels = tinyml_play_kernels;
	const uint8_t *index = tinyml_play_index;
	struct tinyml_play play; /* operands that the kernel does not have stay as they are */

	KEEP(kernels);
	KEEP(index);
	play.image = image;
	while (at != end) {
		const uint32_t head = at[0], form = head & CALL_FORM(7, 1);
		const struct tinyml_play_kernel *kernel;

		if (CALL_KERNEL(head) == CALL_REPEAT) {
			break;
		}
		kernel = &kernels[index[CALL_KERNEL(head)]];
		KEEP(kernel);
		play.kernel = kernel;
		play.record = image + at[1];
		if (form == CALL_FORM(2, 0)) {
			play.operand[0] = player_operand(place->memory, &at[2]);
			play.operand[1] = player_operand(place->memory, &at[3]);
			at += 4;
		} else if (form == CALL_FORM(3, 0)) {
			play.operand[0] = player_operand(place->memory, &at[2]);
			play.operand[1] = player_operand(place->memory, &at[3]);
			play.operand[2] = player_operand(place->memory, &at[4]);
			at += 5;
		} else {
			at = tinyml_player_operands(place, at, play.operand);
		}
		TINYML_LAYER(CALL_HIGH(head), kernel->play(&play));
	}
	return at;
}

/* The calls of a repetition, in all turns. */
static void player_repeat(struct player_place *place)
{
	const uint32_t turns = CALL_HIGH(place->at[0]);
	const uint32_t *const calls = place->at + 2;

	place->at = calls + place->at[1];
	for (uint32_t turn = 0; turn < turns; turn++) {
		place->turn[0] = turn;
		(void)player_calls(place, calls, place->at);
	}
	place->turn[0] = 0;
}

static int player_play(const struct tinyml_player *player, uint32_t position, uint32_t words)
{
	struct player_place place;

	for (uint32_t i = 0; i < 4u; i++) {
		place.memory[i] = (uintptr_t)player->memory[i] - ((uintptr_t)i << OPERAND_BITS);
	}
	place.image = player->memory[TINYML_PLAYER_IMAGE];
	place.at = (const void *)(place.image + position);
	place.end = place.at + words;
	place.level = 0;
	place.turn[0] = 0;
	while (place.at != NULL) {
		place.at = player_calls(&place, place.at, place.end);
		if (place.at == place.end && place.level == 0u) {
			return 0;
		}
		if (place.at != place.end && CALL_COUNT(place.at[0]) == 0u) {
			player_repeat(&place);
		} else { /* a loop begins, or a turn of one ends */
			tinyml_play_kernels[tinyml_play_index[CALL_REPEAT]].play(
				(const void *)&place);
		}
	}
	return TINYML_EBOUND;
}

int tinyml_player_run(struct tinyml_player *player)
{
	if (player->program == NULL) {
		return TINYML_SLOT_NONE;
	}
	return player_play(player, player->program->run, player->program->run_words);
}

void tinyml_player_reset(struct tinyml_player *player)
{
	if (player->program != NULL) {
		(void)player_play(player, player->program->reset, player->program->reset_words);
	}
}
