/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Boxes that may be chosen, the best first, in a heap of keys: the score in the upper bits, and
 * below it a number that is larger for a smaller index, so that of equal scores the first box wins.
 * A file that includes this defines CANDIDATE_BYTES, if scores are bytes: then a key has 32 bits.
 */

#ifndef TINYML_CANDIDATES_H_
#define TINYML_CANDIDATES_H_

#include <stdbool.h>
#include <stdint.h>

#include "real.h"

#ifdef CANDIDATE_BYTES

typedef int8_t candidates_score;
typedef uint32_t candidates_key;

#define CANDIDATE_LAST 0xFFFFFFu

static inline candidates_key candidates_make(int8_t score, int32_t index)
{
	return (uint32_t)((int32_t)score + 128) << 24 | (CANDIDATE_LAST - (uint32_t)index);
}

static inline bool candidates_above(int8_t score, int8_t other)
{
	return score > other;
}

#else

typedef float candidates_score;
typedef uint64_t candidates_key;

#define CANDIDATE_LAST 0xFFFFFFFFu

/* Integers that are ordered like the floats; both zeros are one. */
static inline candidates_key candidates_make(float score, int32_t index)
{
	const uint32_t bits = tinyml_bits_of_float(score);
	const uint32_t order = (bits & 0x80000000u) != 0u ? 0u - bits : bits | 0x80000000u;

	return (uint64_t)order << 32 | (CANDIDATE_LAST - (uint32_t)index);
}

static inline bool candidates_above(float score, float other)
{
	return real_below(other, score);
}

#endif

static inline int32_t candidates_index(candidates_key key)
{
	return (int32_t)(CANDIDATE_LAST - ((uint32_t)key & CANDIDATE_LAST));
}

/* A number that the compiler does not combine with others. Left alone, it may end a loop by an
 * address or by the larger of two numbers, of which one depends on data; then no bound of the turns
 * is to be seen. */
static inline int32_t candidates_counter(int32_t number)
{
#if defined(__GNUC__)
	__asm__("" : "+r"(number));
#endif
	return number;
}

/* How many there are depends on data. No loop turns more often than `most` allows, which does not:
 * so there is a bound of the instructions. */
struct candidates {
	candidates_key *heap;
	int32_t count;
	int32_t most; /* as many, or more */
};

/* `low` is the least index that a child can have in each turn. */
__attribute__((noinline)) static void candidates_sink(const struct candidates *from, int32_t at)
{
	candidates_key *heap = from->heap;
	const int32_t count = from->count;
	const int32_t most = from->most;
	const candidates_key key = heap[at];

	for (int32_t low = 2 * at + 1; low < most; low = 2 * low + 1) {
		int32_t child = 2 * at + 1;

		if (child + 1 < count && heap[child + 1] > heap[child]) {
			child++;
		}
		if (child >= count || heap[child] < key) {
			break;
		}
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = key;
}

static inline void candidates_order(const struct candidates *all)
{
	const int32_t parents = all->count / 2;

	for (int32_t at = all->most / 2 - 1; at >= 0; at--) {
		if (at < parents) {
			candidates_sink(all, at);
		}
	}
}

/* The index of the best, which leaves the heap. */
__attribute__((noinline)) static int32_t candidates_next(struct candidates *from)
{
	const candidates_key best = from->heap[0];

	from->count--;
	from->most--;
	from->heap[0] = from->heap[from->count];
	candidates_sink(from, 0);
	return candidates_index(best);
}

#endif /* TINYML_CANDIDATES_H_ */
