/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "suppression.h"

/* Whether a box reaches a part of one of `count` others, the latest first. `most` is at least
 * `count`, and does not depend on data. */
__attribute__((noinline)) static bool suppression_f32_any(const struct overlap_box *chosen,
							  int32_t count, int32_t most,
							  const struct overlap_box *box, float part)
{
	for (int32_t i = 0; i < most && i != count; i++) {
		if (suppression_reaches(suppression_share(box, &chosen[count - 1 - i]), part)) {
			return true;
		}
	}
	return false;
}

/* Take the best box; true if it is chosen, as number `count`. */
__attribute__((noinline)) static bool suppression_f32_take(struct queue *left, const float *boxes,
							   struct overlap_box *chosen,
							   int32_t count, int32_t most, float part,
							   struct queue_entry *next)
{
	*next = queue_next(left);
	chosen[count] = suppression_box(&boxes[4 * next->index]);
	return !suppression_f32_any(chosen, count, most, &chosen[count], part);
}

void tinyml_suppression_f32(const struct tinyml_suppression *p,
			    struct tinyml_suppression_limits limits, const float *boxes,
			    const float *scores, struct tinyml_suppressed y, void *chosen,
			    void *queue)
{
	struct overlap_box *taken = chosen;
	struct queue left = suppression_collect(p, limits.score, scores, queue);
	const int32_t most = left.count < p->most ? left.count : p->most;
	int32_t found = 0;

	/* a chosen box has one more turn */
	for (int32_t turn = 0; turn < p->boxes + p->most; turn++) {
		if (left.count == 0 || found == most) {
			break;
		}
		struct queue_entry next;

		if (!suppression_f32_take(&left, boxes, taken, found,
					  turn < p->most ? turn : p->most - 1, limits.overlap,
					  &next)) {
			continue;
		}
		y.indices[found] = next.index;
		y.scores[found] = next.score;
		found++;
		queue_add(&left, next);
	}
	suppression_end(p, &y, found);
}
