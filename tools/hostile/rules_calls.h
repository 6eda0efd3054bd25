/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Calls for rules.c to try, and its random numbers. */

#ifndef TINYML_HOSTILE_RULES_CALLS_H_
#define TINYML_HOSTILE_RULES_CALLS_H_

#include "rules.h"

#define RULES_POSITION(part) ((part) * RULES_ROOM)
#define RULES_TABLE          TINYML_PLAY_OPERANDS /* the part of the first table */

/** A call of a real pack, with a record of its own. */
struct call {
	uint32_t number; /* in tinyml_play_kernels */
	uint32_t count;
	uint32_t operands[TINYML_PLAY_OPERANDS];
	uint32_t record[64];
	uint32_t record_bytes;
	const uint8_t *pack; /* that it was in */
	uint32_t pack_bytes;
};

/** What the random numbers go on from. */
extern uint32_t rules_state;

uint32_t rules_any(void);

/** Any number less than @a limit. */
uint32_t rules_below(uint32_t limit);

/** What tables have in them, for checks that look. */
extern uint8_t rules_contents[RULES_TABLES][RULES_ROOM];

/** A changed call, with its tables in rules_memory. @return false if a real call is not known */
bool rules_take_call(struct call *call);

#endif /* TINYML_HOSTILE_RULES_CALLS_H_ */
