/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** The best classes of a box, for detection.h. */

#ifndef TINYML_RANKING_H_
#define TINYML_RANKING_H_

#include <stdint.h>

#include "candidates.h"

/* The first of the best scores. */
static int32_t ranking_best(const candidates_score *scores, int32_t count)
{
	int32_t best = 0;

	for (int32_t i = 1; i < count; i = candidates_counter(i + 1)) {
		if (candidates_above(scores[i], scores[best])) {
			best = i;
		}
	}
	return best;
}

/* Move a hole in a heap, whose root is the worst, down to a leaf, and `class` from there upwards.
 * `low` and `high` are the least and the largest place that it can have, which do not depend on
 * data: so there is a bound of the instructions. */
static void ranking_settle(const candidates_score *scores, int32_t *heap, int32_t count, int32_t at,
			   int32_t class)
{
	const int32_t top = at;
	int32_t child = 2 * at + 2;

	for (int32_t low = child; low < count; low *= 2) {
		if (candidates_counter(child) >= count) {
			break;
		}
		if (candidates_above(scores[heap[child]], scores[heap[child - 1]])) {
			child--;
		}
		heap[at] = heap[child];
		at = child;
		child = 2 * at + 2;
	}
	if (child == count) {
		heap[at] = heap[child - 1];
		at = child - 1;
	}
	for (int32_t high = count - 1; high > top; high = (high - 1) / 2) {
		if (candidates_counter(at) <= top ||
		    !candidates_above(scores[heap[(at - 1) / 2]], scores[class])) {
			break;
		}
		heap[at] = heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	heap[at] = class;
}

/*
 * The `kinds` best classes, the best first. Equal scores come in the order in which the heap of
 * std::partial_sort() leaves them, because TensorFlow Lite uses that.
 */
static void ranking_sort(const candidates_score *scores, int32_t count, int32_t kinds,
			 int32_t *order)
{
	for (int32_t i = 0; i < kinds; i++) {
		order[i] = i;
	}
	for (int32_t i = kinds / 2 - 1; i >= 0; i--) {
		ranking_settle(scores, order, kinds, i, order[i]);
	}
	for (int32_t i = kinds; i < count; i = candidates_counter(i + 1)) {
		if (candidates_above(scores[i], scores[order[0]])) {
			ranking_settle(scores, order, kinds, 0, i);
		}
	}
	for (int32_t i = kinds - 1; i > 0; i--) {
		const int32_t class = order[i];

		order[i] = order[0];
		ranking_settle(scores, order, i, 0, class);
	}
}

#endif /* TINYML_RANKING_H_ */
