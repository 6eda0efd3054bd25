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
 * does not: so there is a bound of the instructions. A kernel that knows how many moves its calls
 * have in all says so: turns_of_queue_add() and turns_of_queue_next().
 */

#ifndef TINYML_QUEUE_H_
#define TINYML_QUEUE_H_

#include <stdint.h>

#include "real.h"
#include "totals.h"

struct queue_entry {
	float score; /* not NaN */
	int32_t index;
};

struct queue {
	struct queue_entry *heap;
	int32_t count;
	int32_t most;
};

TINYML_TURNS_OF(queue_add)
TINYML_TURNS_OF(queue_next)

/* Places count from 1. A turn is a move up; `high` is the largest place that can be above it. */
__attribute__((noinline)) static void queue_add(struct queue *to, float score, int32_t index)
{
	struct queue_entry *heap = to->heap;
	struct queue_entry *hole = &heap[to->count];
	uint32_t high = (uint32_t)to->most / 2u;
	uint32_t up = (uint32_t)++to->count / 2u;

	if (high != 0u && up != 0u && real_less(heap[up - 1u].score, score)) {
		for (;;) {
			TINYML_COUNT(queue_add);
			*hole = heap[up - 1u];
			hole = &heap[up - 1u];
			high /= 2u;
			up /= 2u;
			if (high == 0u || up == 0u) {
				break;
			}
			if (!real_less(heap[up - 1u].score, score)) {
				break;
			}
		}
	}
	hole->score = score;
	hole->index = index;
}

/* The best entry, which leaves. A turn is a move down, or finds that the last entry fits; `high` is
 * the largest place that the hole can have. */
__attribute__((noinline)) static struct queue_entry queue_next(struct queue *from)
{
	struct queue_entry *const heap = from->heap;
	const uint32_t count = (uint32_t)from->count - 1u;
	const struct queue_entry best = heap[0];
	const struct queue_entry last = heap[count];
	struct queue_entry *hole = heap;
	uint32_t child = 2;
	uint32_t high = ((uint32_t)from->most - 1u) / 2u;

	if (high != 0u && child <= count) {
		for (;;) {
			TINYML_COUNT(queue_next);
			const struct queue_entry *larger = &heap[child - 1u];

			if (child < count && !real_less(larger[1].score, larger[0].score)) {
				larger++;
				child++;
			}
			if (real_less(larger->score, last.score)) {
				break;
			}
			*hole = *larger;
			hole = &heap[child - 1u];
			high /= 2u;
			child *= 2u;
			if (high == 0u || child > count) {
				break;
			}
		}
	}
	*hole = last;
	from->count = (int32_t)count;
	return best;
}

#endif /* TINYML_QUEUE_H_ */
