/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Makes the calls of an image that is open. */

#include "program.h"

/* The compiler keeps a value in a register instead of computing it again. */
#define PLAYER_KEEP(value) __asm__("" : "+r"(value))

/* The address of the operand at `word`; `memory` has addresses that make up for its highest bits.
 */
static inline void *player_operand(const uintptr_t *memory, const uint32_t *word)
{
	return (void *)(memory[OPERAND_MEMORY(*word)] + *word);
}

/* The operands of any call; returns what follows it. */
__attribute__((noinline)) static const uint32_t *
player_operands(const uintptr_t *memory, const uint32_t *at, uint32_t turn, void **operand)
{
	const uint32_t head = at[0], count = CALL_COUNT(head);

	at += 2;
	for (uint32_t i = 0; i < count; i++) {
		operand[i] = player_operand(memory, at++);
	}
	if (CALL_STRIDED(head)) {
		for (uint32_t i = 0; i < count; i++) {
			operand[i] = (uint8_t *)operand[i] + turn * *at++;
		}
	}
	return at;
}

/* Make calls up to `end` or to a repetition; returns where that is. Small models spend a hundredth
 * of their time here. So operands, of which kernels have seldom more than three, are not a loop. */
__attribute__((noinline)) static const uint32_t *player_calls(const uint8_t *image,
							      const uintptr_t *memory,
							      const uint32_t *at,
							      const uint32_t *end, uint32_t turn)
{
	const struct tinyml_play_kernel *kernels = tinyml_play_kernels;
	const uint8_t *index = tinyml_play_index;
	struct tinyml_play play; /* operands that the kernel does not have stay as they are */

	PLAYER_KEEP(kernels);
	PLAYER_KEEP(index);
	play.image = image;
	while (at != end) {
		const uint32_t head = at[0], form = head & CALL_FORM(7, 1);
		const struct tinyml_play_kernel *kernel;

		if (CALL_KERNEL(head) == CALL_REPEAT) {
			break;
		}
		kernel = &kernels[index[CALL_KERNEL(head)]];
		PLAYER_KEEP(kernel);
		play.kernel = kernel;
		play.record = image + at[1];
		if (form == CALL_FORM(2, 0)) {
			play.operand[0] = player_operand(memory, &at[2]);
			play.operand[1] = player_operand(memory, &at[3]);
			at += 4;
		} else if (form == CALL_FORM(3, 0)) {
			play.operand[0] = player_operand(memory, &at[2]);
			play.operand[1] = player_operand(memory, &at[3]);
			play.operand[2] = player_operand(memory, &at[4]);
			at += 5;
		} else {
			at = player_operands(memory, at, turn, play.operand);
		}
		TINYML_LAYER(CALL_HIGH(head), kernel->play(&play));
	}
	return at;
}

static void player_play(const struct tinyml_player *player, uint32_t position, uint32_t words)
{
	const uint8_t *const image = player->memory[TINYML_PLAYER_IMAGE];
	const uint32_t *at = (const void *)(image + position);
	const uint32_t *const end = at + words;
	uintptr_t memory[4];

	for (uint32_t i = 0; i < 4u; i++) {
		memory[i] = (uintptr_t)player->memory[i] - ((uintptr_t)i << OPERAND_BITS);
	}
	for (at = player_calls(image, memory, at, end, 0); at != end;
	     at = player_calls(image, memory, at, end, 0)) {
		const uint32_t turns = CALL_HIGH(at[0]);
		const uint32_t *const calls = at + 2;

		at = calls + at[1];
		for (uint32_t turn = 0; turn < turns; turn++) {
			(void)player_calls(image, memory, calls, at, turn);
		}
	}
}

int tinyml_player_run(struct tinyml_player *player)
{
	if (player->program == NULL) {
		return TINYML_SLOT_NONE;
	}
	player_play(player, player->program->run, player->program->run_words);
	return 0;
}

void tinyml_player_reset(struct tinyml_player *player)
{
	if (player->program != NULL) {
		player_play(player, player->program->reset, player->program->reset_words);
	}
}
