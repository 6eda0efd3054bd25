/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Hostile packs under sanitizers: packs SEED FIRST COUNT. Prints how many packs were refused for
 * which reason. A finding ends the program with the number of its pack. */

#include <sanitizer/asan_interface.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "packs.h"

#define ERRORS        64
#define HANGS_SECONDS 20
#define A_WATCH       256u /* packs between two looks at the clock */

static uint8_t *image, **arenas, **states;
static const struct seed *now;
static uint32_t start, number;

static uint8_t *exactly(uint32_t bytes)
{
	void *memory = NULL;

	if (posix_memalign(&memory, TINYML_PLAYER_ALIGNMENT, bytes > 0u ? bytes : 1u) != 0) {
		abort();
	}
	return memory;
}

void packs_memory(const struct seed *seed, uint8_t **image_at, uint32_t *most, uint8_t **arena,
		  uint8_t **state)
{
	now = seed;
	*image_at = image;
	*most = packs_most_bytes + PACKS_GROWTH;
	*arena = arenas[seed - packs_seeds];
	*state = states[seed - packs_seeds];
	__asan_unpoison_memory_region(image, *most);
	__asan_unpoison_memory_region(*arena, seed->arena_bytes);
}

void packs_limit(uint32_t image_bytes, uint32_t arena_bytes, uint32_t state_bytes)
{
	uint8_t *const arena = arenas[now - packs_seeds];

	(void)state_bytes; /* its memory has this size */
	__asan_poison_memory_region(image + image_bytes,
				    packs_most_bytes + PACKS_GROWTH - image_bytes);
	__asan_poison_memory_region(arena + arena_bytes, now->arena_bytes - arena_bytes);
}

const char *packs_guards(void)
{
	return NULL;
}

static void report(void)
{
	fprintf(stderr, "pack %u of seed %u\n", (unsigned int)number, (unsigned int)start);
}

static void hangs(int signal_number)
{
	(void)signal_number;
	report();
	fprintf(stderr, "it does not end\n");
	_exit(4);
}

int main(int count, char **words)
{
	uint32_t counts[ERRORS] = {0}, last;

	if (count != 4) {
		return 2;
	}
	start = (uint32_t)strtoul(words[1], NULL, 0);
	number = (uint32_t)strtoul(words[2], NULL, 0);
	last = number + (uint32_t)strtoul(words[3], NULL, 0);
	image = exactly(packs_most_bytes + PACKS_GROWTH);
	arenas = calloc(packs_seed_count, sizeof(*arenas));
	states = calloc(packs_seed_count, sizeof(*states));
	for (uint32_t i = 0; i < packs_seed_count; i++) {
		arenas[i] = exactly(packs_seeds[i].arena_bytes);
		states[i] = exactly(packs_seeds[i].state_bytes);
	}
	__sanitizer_set_death_callback(report);
	signal(SIGALRM, hangs);
	for (; number != last; number++) {
		int error;
		const char *wrong;

		if (number % A_WATCH == 0u) {
			alarm(HANGS_SECONDS);
		}
		wrong = packs_try(start, number, &error);
		if (wrong != NULL) {
			report();
			fprintf(stderr, "%s (%d)\n", wrong, error);
			return 3;
		}
		counts[-error % ERRORS]++;
	}
	for (int i = 0; i < ERRORS; i++) {
		if (counts[i] != 0u) {
			printf("%d %u\n", -i, (unsigned int)counts[i]);
		}
	}
	return 0;
}
