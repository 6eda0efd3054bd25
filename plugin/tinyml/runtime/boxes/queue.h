/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Boxes by their scores, equal ones in the order of GCC's std::priority_queue, with which
 * TensorFlow Lite chooses: scores alone are compared, so the moves of the heap decide. An entry
 * that is taken leaves a hole, which moves down along the larger children, of equal ones the
 * second, to where the last entry fits. There it moves to a leaf first, and the last entry rises
 * from it: that ends at the same place.
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

/* Places count from 1. `high` is the largest that the entry can have in each turn. */
__attribute__((noinline)) static void queue_add(struct queue *to, struct queue_entry entry)
{
	uint32_t at = (uint32_t)++to->count;
	struct queue_entry *hole = &to->heap[at - 1u];

	for (uint32_t high = (uint32_t)to->most; high > 1u && at > 1u; high /= 2u) {
		at /= 2u;
		struct queue_entry *parent = &to->heap[at - 1u];

		if (!real_below(parent->score, entry.score)) {
			break;
		}
		*hole = *parent;
		hole = parent;
	}
	*hole = entry;
}

/* The best entry, which leaves. `low` is the least place that a child can have in each turn. */
__attribute__((noinline)) static struct queue_entry queue_next(struct queue *from)
{
	struct queue_entry *heap = from->heap;
	const uint32_t count = (uint32_t)from->count - 1u;
	const uint32_t most = (uint32_t)from->most;
	const struct queue_entry best = heap[0];
	const struct queue_entry last = heap[count];
	struct queue_entry *hole = heap;
	uint32_t child = 2;

	for (uint32_t low = 2; low < most; low *= 2u) {
		if (child > count) {
			break;
		}
		if (child < count && !real_below(heap[child].score, heap[child - 1u].score)) {
			child++;
		}
		if (real_below(heap[child - 1u].score, last.score)) {
			break;
		}
		*hole = heap[child - 1u];
		hole = &heap[child - 1u];
		child *= 2u;
	}
	*hole = last;
	from->count = (int32_t)count;
	return best;
}

#endif /* TINYML_QUEUE_H_ */
