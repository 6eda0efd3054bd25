/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** The rules of kernels: what rules.c requires of a machine. */

#ifndef TINYML_HOSTILE_RULES_H_
#define TINYML_HOSTILE_RULES_H_

#include <stdbool.h>
#include <stdint.h>

#include <tinyml/play.h>

#define RULES_TABLES 20                                        /* positions in a record */
#define RULES_PARTS  (TINYML_PLAY_OPERANDS + RULES_TABLES + 1) /* and the record itself */
#define RULES_ROOM   8192u                                     /* bytes for each */
#define RULES_MARGIN 64u
#define RULES_AFTER  1024u /* bytes after a part, from a multiple of this on */
#define RULES_MOST   (RULES_ROOM - RULES_AFTER - 2u * RULES_MARGIN) /* bytes of one */

/** Where records have positions: offsets, RULES_NO_TABLE after the last; by tinyml_play_kernels. */
#define RULES_NO_TABLE 255u
extern const uint8_t rules_tables[][RULES_TABLES];

/** A part of the memory of a call. */
struct part {
	uint8_t *at;
	uint32_t bytes;
	uint32_t alignment;
	bool used;
};

/** Memory for all parts; part i is within RULES_ROOM bytes from i * RULES_ROOM on. After them there
 * is as much for rules.c. */
extern uint8_t rules_memory[(RULES_PARTS + 1) * RULES_ROOM];

/** Where a part of `bytes` goes; @a exactly says whether its alignment is no more than required. */
uint8_t *rules_place(uint32_t part, uint32_t bytes, uint32_t alignment, bool exactly);

/** Forbid everything but the parts until rules_allow(). @a turn: 0 and then 1, with other bytes
 * around the parts. */
void rules_forbid(const struct part *parts, uint32_t turn);

/** @return whether what was forbidden is as it was */
bool rules_allow(const struct part *parts, uint32_t turn);

/** Whether a machine finds all reads outside; else calls are made twice, and results compared. */
extern const bool rules_finds_reads;

/**
 * Change the record of a real call at random, and make the call in memory of exactly the bytes that
 * its check states.
 *
 * @return what went wrong, or NULL; *kernel is the kernel if the call was made, else 0
 */
const char *rules_try(uint32_t start, uint32_t number, uint32_t *kernel);

#endif /* TINYML_HOSTILE_RULES_H_ */
