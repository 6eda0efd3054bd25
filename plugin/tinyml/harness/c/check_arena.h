/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Around each layer, every byte of the arena is guarded that the layer has no business with: only
 * its inputs, outputs and scratch memory are accessible. Without this, a kernel that writes past
 * its output into another tensor of the same arena goes unnoticed. On the host, AddressSanitizer
 * guards them; on emulated cores, which have none, a checksum does, so that only writes are
 * noticed. */

#ifndef TINYML_HARNESS_CHECK_ARENA_H_
#define TINYML_HARNESS_CHECK_ARENA_H_

#include <stddef.h>
#include <stdint.h>

struct check_arena_range { /* in order; they do not overlap */
	uint32_t start;
	uint32_t end; /* equal to start: none */
};

#ifdef __SANITIZE_ADDRESS__

#include <sanitizer/asan_interface.h>

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

#else /* __SANITIZE_ADDRESS__ */

#include "port.h"

/* FNV-1a of the bytes outside the ranges. */
static inline uint32_t check_arena_sum(const uint8_t *arena, size_t size,
				       const struct check_arena_range *ranges, size_t count)
{
	uint32_t sum = 2166136261u;
	size_t at = 0;

	for (size_t i = 0; i <= count; i++) {
		for (; at < (i < count ? ranges[i].start : size); at++) {
			sum = (sum ^ arena[at]) * 16777619u;
		}
		if (i < count && ranges[i].end > at) {
			at = ranges[i].end;
		}
	}
	return sum;
}

#define CHECK_ARENA(arena, ranges, index, call)                                                    \
	do {                                                                                       \
		const size_t count = sizeof((ranges)[index]) / sizeof((ranges)[index][0]);         \
		const uint32_t sum =                                                               \
			check_arena_sum(arena, sizeof(arena), (ranges)[index], count);             \
                                                                                                   \
		call;                                                                              \
		if (check_arena_sum(arena, sizeof(arena), (ranges)[index], count) != sum) {        \
			port_print("layer " #index " wrote outside its bytes of the arena\n");     \
			port_exit(1);                                                              \
		}                                                                                  \
	} while (0)

#endif /* __SANITIZE_ADDRESS__ */

#endif /* TINYML_HARNESS_CHECK_ARENA_H_ */
