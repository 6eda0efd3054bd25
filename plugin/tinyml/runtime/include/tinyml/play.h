/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * How the player calls kernels, and how it checks calls: for kernels and for generated tables.
 *
 * A program is a sequence of calls, in words of four bytes:
 *
 *   head: bits 0-9 kernel, 10-12 number of operands, 13 whether steps follow, 16-31 layer
 *   position of the record in the image
 *   operands: bits 30-31 enum tinyml_player_memory, 0-29 position
 *   steps of the operands, if the head says so: what a turn of a repetition adds to the position;
 *   then those of each loop around the call, the outermost one first
 *
 * Kernel 0 repeats calls: bits 16-31 of its head are the number of turns, and the second word is
 * the number of words of the calls that follow and are repeated. Repetitions contain only calls.
 *
 * Kernel 0 with an operand is a loop: its body follows it. See <tinyml/play_loop.h>.
 *
 * The record of a call is the structure that its kernel takes, with positions in the image in
 * place of pointers: struct tinyml_play_NAME for struct tinyml_NAME.
 */

#ifndef TINYML_PLAY_H_
#define TINYML_PLAY_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TINYML_PLAY_OPERANDS 7

/** Counts changes of what kernels expect in their records and tables. A pack has the number of the
 * last change that concerns one of its kernels, so it fits firmware with this number or a higher
 * one, unless the layout of one of its kernels has changed since. */
#define TINYML_PLAY_LAYOUTS 2

/** The most loops inside one another. */
#define TINYML_PLAY_NESTED_LOOPS 4

/** The work of making a call, beside that of its kernel. */
#define TINYML_PLAY_WORK 16u

struct tinyml_play_kernel;

/** A call, ready to be made. */
struct tinyml_play {
	const struct tinyml_play_kernel *kernel;
	const uint8_t *image;
	const void *record;
	void *operand[TINYML_PLAY_OPERANDS];
};

/** A call that is being checked. */
struct tinyml_check {
	const uint8_t *image;
	const void *record;
	const uint32_t *operands;
	const uint32_t *steps; /* NULL: all are 0 */
	uint32_t turns;
	uint32_t repeated; /* words of a repetition that are left */
	uint32_t layouts;  /* of the pack */
	uint32_t count;    /* of operands */
	uint32_t bytes[4]; /* that there are, by enum tinyml_player_memory */
	uint32_t stated;   /* operands of which the check has said what the call does: a bit each */
	bool wrong;
	uint32_t work; /* of the calls so far; in a loop those of one turn */
	uint32_t left; /* words behind the call: of a body, or of all calls */
	/* What loops around the call set. */
	uint32_t level; /* how many there are */
	void (*leave)(struct tinyml_check *check);
	void (*around)(struct tinyml_check *check, uint32_t operand, uint32_t bytes,
		       uint32_t alignment);
	struct {
		uint32_t turns;
		uint32_t work; /* before the loop */
		uint32_t left; /* behind the body */
	} loops[TINYML_PLAY_NESTED_LOOPS];
};

/**
 * A kernel that a player can call.
 *
 * Its check states for every operand what the call reads and writes, in terms of the record and for
 * any record: all numbers in it may be hostile. Sums and products of them saturate. The contents of
 * tables and operands do not matter to a kernel's addresses, or the check reads them too.
 */
struct tinyml_play_kernel {
	void (*play)(const struct tinyml_play *play);
	/** @return the work of the call, at most: multiplications, or elements that it visits */
	uint32_t (*check)(struct tinyml_check *check);
	void (*function)(void); /* what `play` calls, of the type that it knows */
	const void *loop;       /* a part of the kernel that not every model needs */
	uint16_t record_bytes;
	uint8_t operands;
	uint8_t layouts; /* the change that made its record and tables what they are; 0: none */
};

/** The kernels of this firmware; the first one is empty. */
extern const struct tinyml_play_kernel tinyml_play_kernels[];

/** Where a kernel is in tinyml_play_kernels, by its number in programs; 0: it is not there. */
extern const uint8_t tinyml_play_index[];
extern const uint32_t tinyml_play_index_count;

/** Sums and products that stay at UINT32_MAX instead of starting again. */
uint32_t tinyml_check_plus(uint32_t a, uint32_t b);
uint32_t tinyml_check_times(uint32_t a, uint32_t b);

/** The call reads or writes this many bytes of an operand, which is not NULL. @a alignment is a
 * power of two, at most TINYML_PLAYER_ALIGNMENT. */
void tinyml_check_reads(struct tinyml_check *check, uint32_t operand, uint32_t bytes,
			uint32_t alignment);
void tinyml_check_writes(struct tinyml_check *check, uint32_t operand, uint32_t bytes,
			 uint32_t alignment);

/** Whether the call gets a NULL pointer; if not, its check states what it reads or writes. */
bool tinyml_check_nothing(struct tinyml_check *check, uint32_t operand);

/** The call reads this many bytes at a position of the image. */
void tinyml_check_constants(struct tinyml_check *check, uint32_t position, uint32_t bytes,
			    uint32_t alignment);

/** A table of the image, or NULL for position 0. */
static inline const void *tinyml_play_table(const struct tinyml_play *play, uint32_t position)
{
	return position != 0u ? play->image + position : NULL;
}

/** Something that the call requires. */
static inline void tinyml_check_that(struct tinyml_check *check, bool condition)
{
	if (!condition) {
		check->wrong = true;
	}
}

#ifdef __cplusplus
}
#endif

#endif /* TINYML_PLAY_H_ */
