/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What an image has in place of code; the descriptor's `run` is its position. */

#ifndef TINYML_PROGRAM_H_
#define TINYML_PROGRAM_H_

#include <stdint.h>

#include <tinyml/play.h>
#include <tinyml/player.h>

#define PROGRAM_FORMAT       1u
#define PROGRAM_FORMAT_LOOPS 2u /* with loops, which firmware that knows format 1 alone refuses */

/* CALL_FORM: both the number of operands and whether steps follow, as in the head. */
#define CALL_REPEAT               0u      /* a repetition; with operands a loop */
#define CALL_BEGIN                0x1fffu /* of the head: kernel and number of operands */
#define CALL_KERNEL(head)         ((head) & 0x3ffu)
#define CALL_COUNT(head)          (((head) >> 10) & 7u)
#define CALL_STRIDED(head)        (((head) & 0x2000u) != 0u)
#define CALL_FORM(count, strided) (((count) * 0x400u) | ((strided) * 0x2000u))
#define CALL_HIGH(head)           ((head) >> 16) /* a layer, or turns */

#define OPERAND_BITS              30 /* of the position */
#define OPERAND_MEMORY(operand)   ((operand) >> OPERAND_BITS)
#define OPERAND_POSITION(operand) ((operand) & 0x3fffffffu)

struct tinyml_program {
	uint32_t sum; /* of all words of the payload but this one */
	uint8_t format;
	uint8_t layouts; /* of records and tables: TINYML_PLAY_LAYOUTS when a kernel got its own */
	uint16_t test_step; /* the self-test has every so many elements of outputs; 0: all */
	uint32_t work;      /* of a run, at most */
	uint32_t run;       /* position of the calls */
	uint32_t run_words;
	uint32_t reset;
	uint32_t reset_words; /* 0: the model has no state */
};

/* The compiler keeps a value in a register instead of computing it again. */
#define KEEP(value) __asm__("" : "+r"(value))

/* Where a run is. */
struct player_place {
	const uint8_t *image;
	uintptr_t memory[4]; /* by enum tinyml_player_memory, less its number in the highest bits */
	const uint32_t *at;
	const uint32_t *end;                         /* of all calls, or of the body of a loop */
	uint32_t level;                              /* loops around `at` */
	uint32_t turn[1 + TINYML_PLAY_NESTED_LOOPS]; /* of a repetition, and of each loop */
	struct {
		const uint32_t *call;
		const uint32_t *end; /* of what is around the loop */
	} loops[TINYML_PLAY_NESTED_LOOPS];
};

/* The operands of any call; returns what follows it. */
const uint32_t *tinyml_player_operands(const struct player_place *place, const uint32_t *at,
				       void **operand);

/* The self-test, at the position that the descriptor's `test` gives: for each input how to make it
 * of noise, for each output what must come of it. */
struct test_input {
	uint32_t low; /* the smallest value: int32_t or float */
	uint32_t
		span; /* how many integers there are; for floats the step between values, a float */
};

struct test_output {
	uint32_t expected; /* position of the elements, a multiple of 8 */
	float relative;    /* floats may differ by this part of the largest */
	float absolute;    /* and by this much */
};

/* How far apart the elements are that the self-test compares. */
static inline uint32_t tinyml_program_test_step(const struct tinyml_program *program)
{
	return program->test_step != 0u ? program->test_step : 1u;
}

/* Bytes of an element, by enum tinyml_type. */
extern const uint8_t tinyml_player_sizes[];

/* Continue the sum of an image's words; both ends are multiples of four. */
uint32_t tinyml_word_sum(uint32_t sum, const uint8_t *start, const uint8_t *end);

/* Whether every call of a model stays within its memory; else an error. */
int tinyml_program_check(struct tinyml_player *player, uint32_t image_bytes);

#endif /* TINYML_PROGRAM_H_ */
