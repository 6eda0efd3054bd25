/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Loops of a program. */

#ifndef TINYML_PLAY_LOOP_H_
#define TINYML_PLAY_LOOP_H_

#include <tinyml/play.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The words after the call of a loop are its body: calls, repetitions, other loops. The operand is
 * the condition, a byte: each turn begins with reading it, and 0 ends the loop. Without an operand
 * (NULL) all turns are made. Calls under a condition are a loop with a single turn.
 */
struct tinyml_play_loop {
	uint32_t turns;   /* at most */
	uint32_t words;   /* of the body */
	uint16_t bounded; /* if the condition still holds after all turns, the run fails */
	uint16_t unless;  /* the condition is that the byte is 0 */
};

/** Begins a loop, or the next turn of one. What it gets is a struct player_place (program.h). */
void tinyml_play_loop(const struct tinyml_play *play);
uint32_t tinyml_check_loop(struct tinyml_check *check);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_PLAY_LOOP_H_ */
