/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Hostile packs: what packs.c requires of a machine. */

#ifndef TINYML_HOSTILE_PACKS_H_
#define TINYML_HOSTILE_PACKS_H_

#include <stdbool.h>
#include <stdint.h>

#include <tinyml/player.h>

#define PACKS_GROWTH 128u /* bytes that a pack may grow by */

/** A real pack. */
struct seed {
	const uint32_t *words;
	uint32_t bytes;
	uint32_t arena_bytes;
	uint32_t state_bytes;
};

extern const struct seed packs_seeds[];
extern const uint32_t packs_seed_count;
extern const uint32_t packs_most_bytes; /* of a seed; and of its arena and state */
extern const uint32_t packs_most_arena;
extern const uint32_t packs_most_state;

/** Memory for a pack and its model, all of which may be used. */
void packs_memory(const struct seed *seed, uint8_t **image, uint32_t *most, uint8_t **arena,
		  uint8_t **state);

/** From now on, only so many bytes of it may be used. */
void packs_limit(uint32_t image_bytes, uint32_t arena_bytes, uint32_t state_bytes);

/** What was used all the same; NULL: nothing. */
const char *packs_guards(void);

static inline uint32_t packs_sum(const uint8_t *at, uint32_t bytes)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i + 4u <= bytes; i += 4u) {
		sum = (sum << 5 | sum >> 27) + *(const uint32_t *)(const void *)&at[i];
	}
	return sum;
}

/**
 * Make pack @a number of the campaign @a start, open it and, if it is accepted, run it.
 *
 * @return what went wrong, or NULL; *error is what opening it returned
 */
const char *packs_try(uint32_t start, uint32_t number, int *error);

#endif /* TINYML_HOSTILE_PACKS_H_ */
