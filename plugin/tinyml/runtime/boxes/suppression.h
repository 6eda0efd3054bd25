/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * What suppression_f32.c and soft_suppression_f32.c share: TensorFlow Lite's NonMaxSuppressionV4
 * and V5, with the same arithmetic in the same order. A box that was chosen goes back into the
 * queue there; its next turn finds it equal to itself. One without an area equals nothing, and is
 * chosen again.
 *
 * It goes back here as well, because the moves of the queue decide about equal scores. But what its
 * next turn finds is known when it is chosen, from a comparison with itself: the boxes that were
 * chosen before it do not drop it, and those that are chosen later neither, because they are not
 * dropped by it, and what two boxes share is the same both ways. So an entry for it has a mark
 * instead of an index, which is below zero.
 */

#ifndef TINYML_SUPPRESSION_H_
#define TINYML_SUPPRESSION_H_

#include <stdbool.h>

#include <tinyml/boxes.h>

#include "box.h"
#include "queue.h"
#include "totals.h"

#define SUPPRESSION_OUT     (-1)   /* a mark: the box will be dropped */
#define SUPPRESSION_COUNTED 0x7fff /* with more boxes, products of their numbers are too large */

#define SUPPRESSION_WHOLE 0x3f800000u /* the bits of 1.0f */

/* The mark of a box that will be chosen again, or the box of such a mark. */
static inline int32_t suppression_again(int32_t index)
{
	return -2 - index;
}

static struct overlap_box suppression_box(const float *box)
{
	const bool down = real_below(box[2], box[0]);
	const bool left = real_below(box[3], box[1]);
	const bool up = real_below(box[0], box[2]);
	const bool right = real_below(box[1], box[3]);

	/* NaN is less than nothing: the first of two corners stays, as with std::min() and max() */
	return box_corners(down ? box[2] : box[0], left ? box[3] : box[1], up ? box[2] : box[0],
			   right ? box[3] : box[1]);
}

/* What two intervals have in common; 0 if there is nothing. */
static inline float suppression_length(float a0, float a1, float b0, float b1)
{
	const float length = real_difference(real_min(a1, b1), real_max(a0, b0));

	return real_below(length, 0.0f) ? 0.0f : length;
}

static inline bool suppression_empty(float area)
{
	return !real_is_nan(area) && !real_positive(area);
}

/* The common area as a part of the joint area, which is NaN if an area is. */
__attribute__((noinline)) static float suppression_share(const struct overlap_box *a,
							 const struct overlap_box *b)
{
	if (suppression_empty(a->area) || suppression_empty(b->area)) {
		return 0.0f;
	}
	const float common = real_product(suppression_length(a->y0, a->y1, b->y0, b->y1),
					  suppression_length(a->x0, a->x1, b->x0, b->x1));

	return real_quotient(common, real_difference(real_sum(a->area, b->area), common));
}

static inline bool suppression_reaches(float share, float part)
{
	return !real_is_nan(share) && !real_is_nan(part) && !real_below(share, part);
}

static inline struct queue suppression_collect(const struct tinyml_suppression *p, float least,
					       const float *scores, struct queue_entry *heap)
{
	struct queue all = {heap, 0, 0};

	for (int32_t i = 0; i < p->boxes; i++) {
		if (real_below(least, scores[i])) {
			all.most = i + 1;
			queue_add(&all, scores[i], i);
		}
	}
	return all;
}

static inline void suppression_end(const struct tinyml_suppression *p,
				   const struct tinyml_suppressed *y, int32_t found)
{
	for (int32_t i = 0; i < p->most; i++) {
		if (i >= found) {
			y->indices[i] = 0;
			y->scores[i] = 0.0f;
		}
	}
	*y->count = found;
}

#endif /* TINYML_SUPPRESSION_H_ */
