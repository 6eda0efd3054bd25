/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * deep: yes
 * proves: player/check.c, player/player.c
 * shapes: any words as one call of a kernel with two or three operands, alone or in up to three
 *   turns, with any record: if the check accepts the call, then making it stays inside
 * variants: COUNT=2; COUNT=3
 * unwind: 5
 */

#include <tinyml/play.h>
#include <tinyml/player.h>

#include "proof.h"

#define CALL_WORDS (2u + 2u * COUNT)

struct bytes {
	uint32_t read, written;
};

static uint32_t check_kernel(struct tinyml_check *check);
static void play_kernel(const struct tinyml_play *play);

const struct tinyml_play_kernel tinyml_play_kernels[] = {
	{NULL},
	{play_kernel, check_kernel, NULL, NULL, sizeof(struct bytes), COUNT},
};
const uint8_t tinyml_play_index[] = {0, 1};
const uint32_t tinyml_play_index_count = 2;

#include "player/check.c"
#include "player/player.c"

static uint32_t image[2u + CALL_WORDS];
static uint32_t arena[4], state[2];

/* A kernel as all are: what it states about its operands is what it does with them. */
static uint32_t check_kernel(struct tinyml_check *check)
{
	const struct bytes *record = check->record;

	tinyml_check_writes(check, 0, record->written, 1);
	tinyml_check_reads(check, 1, record->read, 4);
	if (COUNT > 2) {
		tinyml_check_reads(check, 2, record->read, 1);
	}
	return record->read;
}

static void play_kernel(const struct tinyml_play *play)
{
	const struct bytes *record = play->record;

	__CPROVER_assert(__CPROVER_r_ok(record, sizeof(*record)), "records are in the image");
	__CPROVER_assert(__CPROVER_w_ok(play->operand[0], record->written), "writes stay inside");
	for (int i = 1; i < COUNT; i++) {
		__CPROVER_assert(__CPROVER_r_ok(play->operand[i], record->read), "reads do too");
	}
}

int main(void)
{
	struct tinyml_check check = {
		.image = (const uint8_t *)image,
		.turns = (uint32_t)between(1, 3),
		.bytes = {sizeof(arena), sizeof(state), sizeof(image), 0},
		.left = CALL_WORDS,
	};
	uint8_t *const memories[] = {(uint8_t *)arena, (uint8_t *)state, (uint8_t *)image, NULL};
	uint32_t *const call = &image[2];
	struct player_place place = {.image = (const uint8_t *)image, .level = 0};
	uint32_t words;
	int error;

	__CPROVER_havoc_object(image);
	__CPROVER_assume(CALL_KERNEL(call[0]) != CALL_REPEAT);
	words = check_call(&check, call, &error);
	if (words == 0u) {
		return 0;
	}
	for (uint32_t i = 0; i < 4u; i++) { /* as player_play() has it */
		place.memory[i] = (uintptr_t)memories[i] - ((uintptr_t)i << OPERAND_BITS);
	}
	place.turn[0] = (uint32_t)between(0, (int)check.turns - 1);
	__CPROVER_assert(player_calls(&place, call, call + words) == call + words,
			 "the player takes as many words as the check");
	return 0;
}
