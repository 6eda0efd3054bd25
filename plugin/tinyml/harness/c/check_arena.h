/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Around each layer, AddressSanitizer poisons every byte of the arena that the layer has no
 * business with: its inputs, outputs and scratch memory stay accessible. Without this, a kernel
 * that writes past its output into another tensor of the same arena goes unnoticed. */

#ifndef TINYML_HARNESS_CHECK_ARENA_H_
#define TINYML_HARNESS_CHECK_ARENA_H_

#include <stddef.h>
#include <stdint.h>

#include <sanitizer/asan_interface.h>

struct check_arena_range {
	uint32_t start;
	uint32_t end; /* equal to start: none */
};

static inline void check_arena_begin(uint8_t *arena, size_t size,
				     const struct check_arena_range *ranges, size_t count)
{
	__asan_poison_memory_region(arena, size);
	for (size_t i = 0; i < count; i++) {
		__asan_unpoison_memory_region(arena + ranges[i].start,
					      ranges[i].end - ranges[i].start);
	}
}

#define CHECK_ARENA(arena, ranges, index, call)                                                    \
	do {                                                                                       \
		check_arena_begin(arena, sizeof(arena), (ranges)[index],                           \
				  sizeof((ranges)[index]) / sizeof((ranges)[index][0]));           \
		call;                                                                              \
		__asan_unpoison_memory_region(arena, sizeof(arena));                               \
	} while (0)

#endif /* TINYML_HARNESS_CHECK_ARENA_H_ */
