/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Whether boxes overlap by more than a part. */

#ifndef TINYML_OVERLAP_H_
#define TINYML_OVERLAP_H_

#include <stdbool.h>
#include <stdint.h>

#include "box.h"
#include "totals.h"

/* Whether the common area is more than a part of the joint area. A box with NaN has no area,
 * whatever else is found before that is asked. */
static inline bool overlap_exceeds(const struct overlap_box *a, const struct overlap_box *b,
				   float part)
{
	const float x0 = real_max(a->x0, b->x0);
	const float x1 = real_min(a->x1, b->x1);

	if (!real_below(x0, x1)) {
		return false;
	}
	const float y0 = real_max(a->y0, b->y0);
	const float y1 = real_min(a->y1, b->y1);

	if (!real_below(y0, y1)) {
		return false;
	}
	const float common = real_product(real_difference(x1, x0), real_difference(y1, y0));
	const float joint = real_difference(real_sum(a->area, b->area), common);

	if (!(real_positive(a->area) && real_positive(b->area) && real_positive(joint))) {
		return false;
	}
	return real_below(part, real_quotient(common, joint));
}

TINYML_TURNS_OF(overlap_any)

/* Whether a box overlaps one of `count` others by more than a part. `most` is at least `count`, and
 * does not depend on data. */
__attribute__((noinline)) static bool overlap_any(const struct overlap_box *chosen, int32_t count,
						  int32_t most, const struct overlap_box *box,
						  float part)
{
	int32_t i = 0;

	if (most <= 0 || count == 0) {
		return false;
	}
	for (;;) {
		TINYML_COUNT(overlap_any);
		if (overlap_exceeds(&chosen[i], box, part)) {
			return true;
		}
		i++;
		if (i >= most || i == count) {
			return false;
		}
	}
}

#endif /* TINYML_OVERLAP_H_ */
