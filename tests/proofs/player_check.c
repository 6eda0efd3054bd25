/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * deep: yes
 * proves: player/check.c
 * shapes: programs with any content and any position of their calls, in an image of 24 or 32 bytes
 *   with any content, for a kernel with two operands that states anything: the check reads nothing
 *   outside the image, and accepts no calls that leave it
 * variants: WORDS=6; WORDS=8
 * unwind: 6
 */

#include <tinyml/player.h>

#include "player/program.h"
#include "proof.h"

static uint32_t image[WORDS];

static uint32_t check_kernel(struct tinyml_check *check)
{
	__CPROVER_assert(__CPROVER_r_ok(check->record, 8), "records are in the image");
	__CPROVER_assert(__CPROVER_r_ok(check->operands, 8), "and so are operands");
	__CPROVER_assert(check->steps == NULL || __CPROVER_r_ok(check->steps, 8), "and steps");
	__CPROVER_assert(check->turns > 0u, "a call is made at least once");
	check->stated = nondet_unsigned();
	check->wrong = nondet_bool();
	return nondet_unsigned();
}

const struct tinyml_play_kernel tinyml_play_kernels[] = {
	{NULL},
	{NULL, check_kernel, NULL, NULL, 8, 2},
};
const uint8_t tinyml_play_index[] = {0, 1};
const uint32_t tinyml_play_index_count = 2;

int main(void)
{
	const struct tinyml_program program = {
		.work = nondet_unsigned(),
		.run = nondet_unsigned(),
		.run_words = nondet_unsigned(),
		.reset = nondet_unsigned(),
		.reset_words = nondet_unsigned(),
	};
	struct tinyml_player player = {
		.model = {.arena_bytes = nondet_unsigned()},
		.memory = {NULL, NULL, (uint8_t *)image},
		.state_bytes = nondet_unsigned(),
		.work_limit = nondet_unsigned(),
		.program = &program,
	};

	__CPROVER_havoc_object(image);
	if (tinyml_program_check(&player, sizeof(image)) == 0) {
		__CPROVER_assert(program.run % 4u == 0u && program.run_words <= WORDS &&
					 program.run <= sizeof(image) - 4u * program.run_words,
				 "the calls of a run are in the image");
	}
	return 0;
}
