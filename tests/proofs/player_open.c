/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * deep: yes
 * proves: player/open.c
 * shapes: images of 140 and 176 bytes and less with any content, for a player with one or two
 *   tensors; the check of calls (player_check.c), sums and products are anything
 * variants: BYTES=140 TENSORS=1; BYTES=176 TENSORS=2
 * unwind: 9
 */

#include <tinyml/player.h>

#include "player/program.h"
#include "slot/format.h"
#include "proof.h"

static union {
	uint8_t bytes[BYTES];
	uint64_t whole[(BYTES + 7) / 8];
} image __attribute__((aligned(16)));

int tinyml_pack_choose(const void **pack, uint32_t *bytes)
{
	(void)pack;
	(void)bytes;
	return nondet_int();
}

uint32_t tinyml_word_sum(uint32_t sum, const uint8_t *start, const uint8_t *end)
{
	(void)sum;
	__CPROVER_assert(start <= end && __CPROVER_r_ok(start, (size_t)(end - start)),
			 "words that are there");
	return nondet_unsigned();
}

uint32_t tinyml_check_times(uint32_t a, uint32_t b)
{
	(void)a;
	(void)b;
	return nondet_unsigned();
}

int tinyml_program_check(struct tinyml_player *player, uint32_t image_bytes)
{
	__CPROVER_assert(__CPROVER_r_ok(player->memory[TINYML_PLAYER_IMAGE], image_bytes),
			 "an image that is there");
	__CPROVER_assert(__CPROVER_r_ok(player->program, sizeof(*player->program)),
			 "a program that is there");
	__CPROVER_assert(player->model.arena_bytes <= player->arena_bytes,
			 "an arena that is there");
	return nondet_int();
}

void tinyml_player_reset(struct tinyml_player *player)
{
	(void)player;
}

void *memchr(const void *text, int byte, size_t bytes)
{
	const size_t at = nondet_unsigned();

	(void)byte;
	__CPROVER_assert(__CPROVER_r_ok(text, bytes), "text that is there");
	return at < bytes ? (char *)(uintptr_t)text + at : NULL;
}

int main(void)
{
	static uint8_t arena[16], state[8];
	static struct tinyml_tensor tensors[TENSORS];
	static struct tinyml_player player = {
		.tensors = tensors,
		.memory = {arena, state},
		.arena_bytes = sizeof(arena),
		.state_bytes = sizeof(state),
		.tensor_count = TENSORS,
	};

	__CPROVER_havoc_object(&image);
	if (tinyml_player_open(&player, &image, (uint32_t)between(0, BYTES)) == 0) {
		const int i = between(0, TENSORS - 1);

		if (i < player.model.input_count + player.model.output_count) {
			__CPROVER_assert(__CPROVER_w_ok(tensors[i].data, tensors[i].bytes),
					 "tensors are in the memory of the player");
		}
	}
	return 0;
}
