/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "suppression.h"

struct suppression_f32_state {
	struct queue left;
	struct overlap_box *chosen; /* different boxes */
	int32_t count;              /* of them */
	int32_t found;              /* results */
	float part;
};

TINYML_CALLS_OF(suppression_f32_reaches)
TINYML_CALLS_OF(suppression_f32_keep)
TINYML_CALLS_OF(suppression_f32_first)

/* Whether a box has a part in common with a chosen one. */
__attribute__((noinline)) static bool
suppression_f32_reaches(const struct overlap_box *box, const struct overlap_box *other, float part)
{
	TINYML_COUNT(suppression_f32_reaches);
	return suppression_reaches(suppression_share(box, other), part);
}

/* Whether the next box has a part in common with a chosen one; the latest first, which is the most
 * similar one more often. `most` is at least their number, and does not depend on data. */
static bool suppression_f32_any(const struct suppression_f32_state *s, int32_t most)
{
	const struct overlap_box *box = &s->chosen[s->count];

	for (int32_t i = 0; i < most && i != s->count; i++) {
		if (suppression_f32_reaches(box, box - 1 - i, s->part)) {
			return true;
		}
	}
	return false;
}

/* Choose a box. `mark` is what it is in the queue from then on. */
__attribute__((noinline)) static void suppression_f32_keep(struct suppression_f32_state *s,
							   const struct tinyml_suppressed *y,
							   int32_t index, float score, int32_t mark)
{
	TINYML_COUNT(suppression_f32_keep);
	y->indices[s->found] = index;
	y->scores[s->found] = score;
	s->found++;
	queue_add(&s->left, score, mark);
}

/* The first turn of a box. */
__attribute__((noinline)) static void
suppression_f32_first(struct suppression_f32_state *s, const struct tinyml_suppressed *y,
		      const float *boxes, const struct queue_entry *next, int32_t most)
{
	struct overlap_box *box = &s->chosen[s->count];

	TINYML_COUNT(suppression_f32_first);
	*box = suppression_box(&boxes[4 * next->index]);
	if (suppression_f32_any(s, most)) {
		return;
	}
	const bool once = suppression_f32_reaches(box, box, s->part);

	s->count++;
	suppression_f32_keep(s, y, next->index, next->score,
			     once ? SUPPRESSION_OUT : suppression_again(next->index));
}

/* Each box has one first turn, in which it is compared with those that are chosen by then: fewer
 * than `rows`, and number k with k. Those that are chosen are compared with themselves as well. */
static void suppression_f32_totals(int32_t boxes, int32_t rows)
{
	TINYML_FORGET_TOTAL(suppression_f32_reaches);
	calls_of_suppression_f32_first(boxes);
	calls_of_suppression_f32_keep(rows);
	if (boxes <= SUPPRESSION_COUNTED) {
		calls_of_suppression_f32_reaches(rows * (rows + 1) / 2 +
						 (boxes - rows) * (rows - 1));
	}
}

void tinyml_suppression_f32(const struct tinyml_suppression *p,
			    struct tinyml_suppression_limits limits, const float *boxes,
			    const float *scores, struct tinyml_suppressed y, void *chosen,
			    void *queue)
{
	const int32_t rows = p->most < p->boxes ? p->most : p->boxes;
	const int32_t turns = p->boxes + rows; /* every turn drops a box or has a result */
	struct suppression_f32_state s = {
		.left = suppression_collect(p, limits.score, scores, queue),
		.chosen = chosen,
		.part = limits.overlap};
	const int32_t most = s.left.count < rows ? s.left.count : rows;

	suppression_f32_totals(p->boxes, rows);
	for (int32_t turn = 0; turn < turns; turn++) {
		if (s.left.count == 0 || s.found == most) {
			break;
		}
		s.left.most = turns - turn < p->boxes ? turns - turn : p->boxes;
		const struct queue_entry next = queue_next(&s.left);

		if (next.index >= 0) {
			suppression_f32_first(&s, &y, boxes, &next, turn < rows ? turn : rows - 1);
		} else if (next.index != SUPPRESSION_OUT) {
			suppression_f32_keep(&s, &y, suppression_again(next.index), next.score,
					     next.index);
		}
	}
	suppression_end(p, &y, s.found);
}
