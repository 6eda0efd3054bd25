/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Proves that calls stay within their memory. Each kernel states what it reads and writes; here is
 * whether that is inside. */

#include <stddef.h>

#include "program.h"

/* Called where they are, too: checks are seldom, and their code is always there. */
__attribute__((noinline)) uint32_t tinyml_check_plus(uint32_t a, uint32_t b)
{
	return a + b < a ? UINT32_MAX : a + b;
}

__attribute__((noinline)) uint32_t tinyml_check_times(uint32_t a, uint32_t b)
{
	const uint64_t product = (uint64_t)a * b;

	return product > UINT32_MAX ? UINT32_MAX : (uint32_t)product;
}

static bool check_inside(const struct tinyml_check *check, uint32_t memory, uint32_t position,
			 uint32_t bytes, uint32_t alignment)
{
	return position <= check->bytes[memory] && bytes <= check->bytes[memory] - position &&
	       (position & (alignment - 1u)) == 0u;
}

/* An operand in one of the memories up to `last`. */
static void check_operand(struct tinyml_check *check, uint32_t operand, uint32_t bytes,
			  uint32_t alignment, uint32_t last)
{
	uint32_t word, step = 0;

	if (operand >= check->count) {
		check->wrong = true;
		return;
	}
	check->stated |= 1u << operand;
	word = check->operands[operand];
	if (check->steps != NULL) {
		step = check->steps[operand];
	}
	bytes = tinyml_check_plus(tinyml_check_times(step, check->turns - 1u), bytes);
	tinyml_check_that(check, OPERAND_MEMORY(word) <= last && bytes <= INT32_MAX &&
					 (step & (alignment - 1u)) == 0u &&
					 check_inside(check, OPERAND_MEMORY(word),
						      OPERAND_POSITION(word), bytes, alignment));
	if (check->level != 0u) {
		check->around(check, operand, bytes, alignment);
	}
}

void tinyml_check_reads(struct tinyml_check *check, uint32_t operand, uint32_t bytes,
			uint32_t alignment)
{
	check_operand(check, operand, bytes, alignment, TINYML_PLAYER_IMAGE);
}

void tinyml_check_writes(struct tinyml_check *check, uint32_t operand, uint32_t bytes,
			 uint32_t alignment)
{
	check_operand(check, operand, bytes, alignment, TINYML_PLAYER_STATE);
}

bool tinyml_check_nothing(struct tinyml_check *check, uint32_t operand)
{
	if (operand >= check->count ||
	    OPERAND_MEMORY(check->operands[operand]) != TINYML_PLAYER_NOTHING) {
		return false;
	}
	check_operand(check, operand, 0, 1, TINYML_PLAYER_NOTHING);
	return true;
}

void tinyml_check_constants(struct tinyml_check *check, uint32_t position, uint32_t bytes,
			    uint32_t alignment)
{
	tinyml_check_that(check,
			  check_inside(check, TINYML_PLAYER_IMAGE, position, bytes, alignment));
}

/* One call; returns its words, or 0 with the error in *error. */
static uint32_t check_call(struct tinyml_check *check, const uint32_t *at, int *error)
{
	const uint32_t left = check->repeated != 0u ? check->repeated : check->left;
	const uint32_t head = at[0], number = CALL_KERNEL(head);
	const struct tinyml_play_kernel *kernel;
	uint32_t words, work;

	*error = TINYML_SLOT_KERNEL;
	if (number >= tinyml_play_index_count || tinyml_play_index[number] == 0u) {
		return 0;
	}
	kernel = &tinyml_play_kernels[tinyml_play_index[number]];
	KEEP(kernel);
	*error = TINYML_SLOT_OLD;
	if (kernel->layouts > check->layouts) {
		return 0;
	}
	*error = TINYML_SLOT_CALL;
	check->count = CALL_COUNT(head);
	words = 2u + check->count * (CALL_STRIDED(head) ? 2u + check->level : 1u);
	if (words > left || check->count != kernel->operands) {
		return 0;
	}
	check->wrong = false;
	check->stated = 0;
	check->operands = at + 2;
	check->steps = CALL_STRIDED(head) ? at + 2 + check->count : NULL;
	tinyml_check_constants(check, at[1], kernel->record_bytes, 4);
	if (check->wrong) {
		return 0;
	}
	check->record = check->image + at[1];
	check->left -= words;
	work = tinyml_check_plus(kernel->check(check), TINYML_PLAY_WORK);
	check->work = tinyml_check_plus(check->work, tinyml_check_times(work, check->turns));
	return check->wrong || check->stated != (1u << check->count) - 1u ? 0u : words;
}

/* All calls of a run or a reset, whose work is at most `most`: neither playing them nor checking
 * them takes longer. */
static int check_part(struct tinyml_player *player, struct tinyml_check *check, uint32_t position,
		      uint32_t left, uint32_t most)
{
	const uint32_t *at;
	int error;

	player->call = 0;
	check->turns = 1u;
	check->repeated = 0;
	check->wrong = false;
	check->work = 0;
	check->left = left;
	tinyml_check_constants(check, position, tinyml_check_times(left, 4), 4);
	if (check->wrong) {
		return TINYML_SLOT_POINTER;
	}
	at = (const void *)(check->image + position);
	while (check->left > 0u) {
		uint32_t words = 2;

		if ((at[0] & CALL_BEGIN) == CALL_REPEAT) {
			/* Repetitions have calls and turns, and nothing but calls. */
			if (check->repeated != 0u || check->left < 2u || at[1] == 0u ||
			    at[1] > check->left - 2u || CALL_HIGH(at[0]) == 0u) {
				return TINYML_SLOT_CALL;
			}
			check->repeated = at[1];
			check->turns = CALL_HIGH(at[0]);
			check->left -= 2u;
		} else {
			words = check_call(check, at, &error);
			if (words == 0u) {
				return error;
			}
			if (check->level != 0u) {
				check->leave(check);
			}
			if (check->work > most) {
				return TINYML_SLOT_WORK;
			}
			if (check->repeated != 0u) {
				check->repeated -= words;
			}
			if (check->repeated == 0u) {
				check->turns = 1u;
			}
			player->call++;
		}
		at += words;
	}
	return 0;
}

int tinyml_program_check(struct tinyml_player *player, uint32_t image_bytes)
{
	const struct tinyml_program *program = player->program;
	struct tinyml_check check = {
		.image = player->memory[TINYML_PLAYER_IMAGE],
		.layouts = program->layouts,
		.bytes = {player->model.arena_bytes, player->state_bytes, image_bytes, 0},
	};
	/* UINT32_MAX is where sums and products stay: there is no bound. */
	uint32_t most = program->work < UINT32_MAX ? program->work : UINT32_MAX - 1u;
	int error;

	if (player->work_limit != 0u && player->work_limit < most) {
		most = player->work_limit;
	}
	error = check_part(player, &check, program->reset, program->reset_words, most);
	return error != 0 ? error
			  : check_part(player, &check, program->run, program->run_words, most);
}
