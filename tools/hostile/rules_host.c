/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The rules of kernels under sanitizers: rules SEED FIRST COUNT. Prints how many calls of each
 * kernel were made. */

#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>

#include "rules.h"

#define KERNELS 256

uint8_t rules_memory[(RULES_PARTS + 1) * RULES_ROOM] __attribute__((aligned(64)));
const bool rules_finds_reads = true;

static uint32_t start, number;

uint8_t *rules_place(uint32_t part, uint32_t bytes, uint32_t alignment, bool exactly)
{
	(void)bytes;
	/* What is before a part is found only where it starts at a multiple of eight. */
	return rules_memory + part * RULES_ROOM + RULES_MARGIN + (exactly ? alignment : 0u);
}

void rules_forbid(const struct part *parts, uint32_t turn)
{
	(void)turn;
	__asan_poison_memory_region(rules_memory, sizeof(rules_memory));
	for (uint32_t i = 0; i < RULES_PARTS; i++) {
		if (parts[i].used) {
			__asan_unpoison_memory_region(parts[i].at, parts[i].bytes);
		}
	}
}

bool rules_allow(const struct part *parts, uint32_t turn)
{
	(void)parts;
	(void)turn;
	__asan_unpoison_memory_region(rules_memory, sizeof(rules_memory));
	return true;
}

static void report(void)
{
	fprintf(stderr, "call %u of seed %u\n", (unsigned int)number, (unsigned int)start);
}

int main(int count, char **words)
{
	static uint32_t counts[KERNELS];
	uint32_t last;

	if (count != 4) {
		return 2;
	}
	start = (uint32_t)strtoul(words[1], NULL, 0);
	number = (uint32_t)strtoul(words[2], NULL, 0);
	last = number + (uint32_t)strtoul(words[3], NULL, 0);
	__sanitizer_set_death_callback(report);
	for (; number != last; number++) {
		uint32_t kernel;
		const char *const wrong = rules_try(start, number, &kernel);

		if (wrong != NULL) {
			report();
			fprintf(stderr, "kernel %u: %s\n", (unsigned int)kernel, wrong);
			return 3;
		}
		counts[kernel]++;
	}
	for (uint32_t i = 0; i < KERNELS; i++) {
		if (counts[i] != 0u) {
			printf("%u %u\n", (unsigned int)i, (unsigned int)counts[i]);
		}
	}
	return 0;
}
