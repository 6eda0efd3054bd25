/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Boxes by their corners, and how much two of them overlap. */

#ifndef TINYML_OVERLAP_H_
#define TINYML_OVERLAP_H_

#include <stdbool.h>
#include <stdint.h>

struct overlap_box {
	float y0;
	float x0;
	float y1;
	float x1;
	float area; /* of the other members */
};

static inline struct overlap_box overlap_corners(float y0, float x0, float y1, float x1)
{
	return (struct overlap_box){y0, x0, y1, x1, (x1 - x0) * (y1 - y0)};
}

/* Whether the common area is more than a part of the joint area. */
static inline bool overlap_exceeds(const struct overlap_box *a, const struct overlap_box *b,
				   float part)
{
	const float x0 = a->x0 > b->x0 ? a->x0 : b->x0;
	const float x1 = a->x1 < b->x1 ? a->x1 : b->x1;

	if (!(x1 > x0)) {
		return false;
	}
	const float y0 = a->y0 > b->y0 ? a->y0 : b->y0;
	const float y1 = a->y1 < b->y1 ? a->y1 : b->y1;

	if (!(y1 > y0)) {
		return false;
	}
	const float common = (x1 - x0) * (y1 - y0);
	const float joint = a->area + b->area - common;

	if (!(a->area > 0.0f && b->area > 0.0f && joint > 0.0f)) {
		return false;
	}
	return common / joint > part;
}

/* Whether a box overlaps one of `count` others by more than a part. `most` is at least `count`, and
 * does not depend on data. */
__attribute__((noinline)) static bool overlap_any(const struct overlap_box *chosen, int32_t count,
						  int32_t most, const struct overlap_box *box,
						  float part)
{
	for (int32_t i = 0; i < most && i != count; i++) {
		if (overlap_exceeds(&chosen[i], box, part)) {
			return true;
		}
	}
	return false;
}

#endif /* TINYML_OVERLAP_H_ */
