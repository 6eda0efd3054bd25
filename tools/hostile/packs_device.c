/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Hostile packs on an emulated core: PACKS_START, PACKS_FIRST and PACKS_COUNT say which. There are
 * guards around all memory, and the harness reports faults. */

#include <string.h>

#include "packs.h"
#include "port.h"

#define ERRORS 64
#define GUARD  64u
#define MARK   0xa5

struct guarded {
	uint8_t *at; /* after a guard */
	uint32_t bytes;
};

static uint8_t image_memory[2u * GUARD + PACKS_MOST_BYTES + PACKS_GROWTH]
	__attribute__((aligned(TINYML_PLAYER_ALIGNMENT)));
static uint8_t arena_memory[2u * GUARD + PACKS_MOST_ARENA]
	__attribute__((aligned(TINYML_PLAYER_ALIGNMENT)));
static uint8_t state_memory[2u * GUARD + PACKS_MOST_STATE]
	__attribute__((aligned(TINYML_PLAYER_ALIGNMENT)));
static struct guarded memories[] = {
	{image_memory + GUARD, 0}, {arena_memory + GUARD, 0}, {state_memory + GUARD, 0}};

void packs_memory(const struct seed *seed, uint8_t **image, uint32_t *most, uint8_t **arena,
		  uint8_t **state)
{
	(void)seed;
	*image = memories[0].at;
	*arena = memories[1].at;
	*state = memories[2].at;
	*most = PACKS_MOST_BYTES + PACKS_GROWTH;
}

void packs_limit(uint32_t image_bytes, uint32_t arena_bytes, uint32_t state_bytes)
{
	memories[0].bytes = image_bytes;
	memories[1].bytes = arena_bytes;
	memories[2].bytes = state_bytes;
	for (uint32_t i = 0; i < 3u; i++) {
		memset(memories[i].at - GUARD, MARK, GUARD);
		memset(memories[i].at + memories[i].bytes, MARK, GUARD);
	}
}

static bool is_whole(const uint8_t *guard)
{
	for (uint32_t i = 0; i < GUARD; i++) {
		if (guard[i] != MARK) {
			return false;
		}
	}
	return true;
}

const char *packs_guards(void)
{
	static const char *const names[] = {"the image", "the arena", "the state"};

	for (uint32_t i = 0; i < 3u; i++) {
		if (!is_whole(memories[i].at - GUARD) ||
		    !is_whole(memories[i].at + memories[i].bytes)) {
			return names[i];
		}
	}
	return NULL;
}

static void print_number(uint32_t value, const char *after)
{
	char text[12] = "";
	uint32_t at = sizeof(text) - 1u;

	do {
		text[--at] = (char)('0' + value % 10u);
		value /= 10u;
	} while (value != 0u);
	port_print(&text[at]);
	port_print(after);
}

int main(void)
{
	static uint32_t counts[ERRORS];

	for (uint32_t i = 0; i < PACKS_COUNT; i++) {
		int error = 0;
		const char *const wrong = packs_try(PACKS_START, PACKS_FIRST + i, &error);

		if (wrong != NULL) {
			port_print("pack ");
			print_number(PACKS_FIRST + i, ": written or wrong: ");
			port_print(wrong);
			port_print("\n");
			port_exit(1);
		}
		counts[(uint32_t)-error % ERRORS]++;
	}
	for (uint32_t i = 0; i < ERRORS; i++) {
		if (counts[i] != 0u) {
			port_print(i > 0u ? "-" : "");
			print_number(i, " ");
			print_number(counts[i], "\n");
		}
	}
	port_exit(0);
}
