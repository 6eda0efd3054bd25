/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Boxes by their scores, equal ones in the order of GCC's std::priority_queue, with which
 * TensorFlow Lite chooses: scores alone are compared, so the moves of the heap decide. An entry
 * that is taken leaves a hole, which moves down to a leaf; the last entry fills it and rises.
 *
 * How many entries there are depends on data. No loop turns more often than `most` allows, which
 * does not: so there is a bound of the instructions.
 */

#ifndef TINYML_QUEUE_H_
#define TINYML_QUEUE_H_

#include <stdint.h>

#include "real.h"

struct queue_entry {
	float score;
	int32_t index;
};

struct queue {
	struct queue_entry *heap;
	int32_t count;
	int32_t most;
};

/* Put an entry where there is a hole, or further up. `high` is the largest index that the hole can
 * have in each turn. */
__attribute__((noinline)) static void queue_rise(const struct queue *to, int32_t at,
						 struct queue_entry entry)
{
	struct queue_entry *heap = to->heap;

	for (int32_t high = to->most - 1; high > 0; high = (high - 1) / 2) {
		const int32_t parent = (at - 1) / 2;

		if (at == 0 || !real_below(heap[parent].score, entry.score)) {
			break;
		}
		heap[at] = heap[parent];
		at = parent;
	}
	heap[at] = entry;
}

static inline void queue_add(struct queue *to, struct queue_entry entry)
{
	to->count++;
	queue_rise(to, to->count - 1, entry);
}

/* The best entry, which leaves. `low` is the least index that a child can have in each turn. */
__attribute__((noinline)) static struct queue_entry queue_next(struct queue *from)
{
	struct queue_entry *heap = from->heap;
	const int32_t count = from->count - 1;
	const int32_t most = from->most;
	const struct queue_entry best = heap[0];
	int32_t at = 0;

	for (int32_t low = 1; low < most; low = 2 * low + 1) {
		int32_t child = 2 * at + 1;

		if (child >= count) {
			break;
		}
		if (child + 1 < count && !real_below(heap[child + 1].score, heap[child].score)) {
			child++;
		}
		heap[at] = heap[child];
		at = child;
	}
	from->count = count;
	queue_rise(from, at, heap[count]);
	return best;
}

#endif /* TINYML_QUEUE_H_ */
