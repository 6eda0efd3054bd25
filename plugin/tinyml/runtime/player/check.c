/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Proves that calls stay within their memory. Each kernel states what it reads and writes; here is
 * whether that is inside. */

#include <stddef.h>

#include "program.h"

uint32_t tinyml_check_plus(uint32_t a, uint32_t b)
{
	return a + b < a ? UINT32_MAX : a + b;
}

uint32_t tinyml_check_times(uint32_t a, uint32_t b)
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

void tinyml_check_reads(struct tinyml_check *check, uint32_t operand, uint32_t bytes,
			uint32_t alignment)
{
	uint32_t position, memory, step, way;

	if (operand >= check->count) {
		check->wrong = true;
		return;
	}
	memory = MEMORY(check->operands[operand]);
	position = POSITION(check->operands[operand]);
	step = check->steps != NULL ? check->steps[operand] : 0u;
	way = tinyml_check_times(step, check->turns - 1u);
	tinyml_check_that(check, (step & (alignment - 1u)) == 0u &&
					 check_inside(check, memory, position,
						      tinyml_check_plus(way, bytes), alignment));
}

void tinyml_check_writes(struct tinyml_check *check, uint32_t operand, uint32_t bytes,
			 uint32_t alignment)
{
	tinyml_check_reads(check, operand, bytes, alignment);
	tinyml_check_that(check, operand < check->count &&
					 MEMORY(check->operands[operand]) <= TINYML_PLAYER_STATE);
}

void tinyml_check_constants(struct tinyml_check *check, uint32_t position, uint32_t bytes,
			    uint32_t alignment)
{
	tinyml_check_that(check,
			  check_inside(check, TINYML_PLAYER_IMAGE, position, bytes, alignment));
}

/* One call; returns its words, or 0 with the error in *error. */
static uint32_t check_call(struct tinyml_check *check, const uint32_t *at, uint32_t left,
			   uint32_t *work, int *error)
{
	const uint32_t number = KERNEL(at[0]);
	const struct tinyml_play_kernel *kernel;
	uint32_t words;

	*error = TINYML_SLOT_KERNEL;
	if (number >= tinyml_play_index_count || tinyml_play_index[number] == 0u) {
		return 0;
	}
	kernel = &tinyml_play_kernels[tinyml_play_index[number]];
	*error = TINYML_SLOT_CALL;
	check->count = COUNT(at[0]);
	words = 2u + check->count * (STRIDED(at[0]) ? 2u : 1u);
	if (words > left || check->count != kernel->operands) {
		return 0;
	}
	check->wrong = false;
	check->operands = at + 2;
	check->steps = STRIDED(at[0]) ? at + 2 + check->count : NULL;
	tinyml_check_constants(check, at[1], kernel->record_bytes, 4);
	if (check->wrong) {
		return 0;
	}
	check->record = check->image + at[1];
	*work = tinyml_check_plus(*work, tinyml_check_times(kernel->check(check), check->turns));
	return check->wrong ? 0u : words;
}

/* A run of calls that are made `turns` times. */
static int check_calls(struct tinyml_player *player, struct tinyml_check *check, const uint32_t *at,
		       uint32_t left, uint32_t *work)
{
	int error = 0;

	while (left > 0u) {
		uint32_t words;

		if (left < 2u) {
			return TINYML_SLOT_CALL;
		}
		if (KERNEL(at[0]) == REPEAT) {
			words = at[1];
			if (check->turns != 1u || words > left - 2u || words == 0u ||
			    HIGH(at[0]) == 0u) {
				return TINYML_SLOT_CALL;
			}
			check->turns = HIGH(at[0]);
			error = check_calls(player, check, at + 2, words, work);
			check->turns = 1u;
			if (error != 0) {
				return error;
			}
			words += 2u;
		} else {
			words = check_call(check, at, left, work, &error);
			if (words == 0u) {
				return error;
			}
			player->call++;
		}
		at += words;
		left -= words;
	}
	return 0;
}

static int check_part(struct tinyml_player *player, struct tinyml_check *check, uint32_t position,
		      uint32_t words, uint32_t *work)
{
	check->turns = 1u;
	check->wrong = false;
	tinyml_check_constants(check, position, tinyml_check_times(words, 4), 4);
	if (check->wrong) {
		return TINYML_SLOT_POINTER;
	}
	return check_calls(player, check, (const void *)(check->image + position), words, work);
}

int tinyml_program_check(struct tinyml_player *player, uint32_t image_bytes)
{
	const struct tinyml_program *program = player->program;
	struct tinyml_check check = {
		.image = player->memory[TINYML_PLAYER_IMAGE],
		.bytes = {player->model.arena_bytes, player->state_bytes, image_bytes, 0},
	};
	uint32_t work = 0, reset_work = 0;
	int error;

	player->call = 0;
	error = check_part(player, &check, program->reset, program->reset_words, &reset_work);
	if (error != 0) {
		return error;
	}
	player->call = 0;
	error = check_part(player, &check, program->run, program->run_words, &work);
	if (error != 0) {
		return error;
	}
	work = work > reset_work ? work : reset_work;
	if (work > program->work || (player->work_limit != 0u && work > player->work_limit)) {
		return TINYML_SLOT_WORK;
	}
	return 0;
}
