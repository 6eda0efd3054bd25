/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * TensorFlow Lite's TFLite_Detection_PostProcess, for detection_f32.c and detection_s8.c: these
 * define detection_real(), which makes a real number of an element.
 *
 * Only boxes whose score counts are decoded, one at a time, the best first; a box is compared with
 * those that are chosen already. So the work ends as soon as enough boxes are found.
 */

#ifndef TINYML_DETECTION_H_
#define TINYML_DETECTION_H_

#include <stddef.h>

#include <tinyml/boxes.h>
#include <tinyml/maths.h>

#include "candidates.h"
#include "overlap.h"
#include "ranking.h"

struct detection_operands {
	const candidates_score *boxes;
	const candidates_score *scores;
	const candidates_score *anchors;
};

static float detection_anchor(const struct tinyml_detection *p, const candidates_score *anchor,
			      int32_t i)
{
	return detection_real(anchor[i], p->anchor_scale, p->anchor_zero);
}

static struct overlap_box detection_decode(const struct tinyml_detection *p,
					   const struct detection_operands *x, int32_t index)
{
	const candidates_score *box = &x->boxes[index * p->box_stride];
	const candidates_score *anchor = &x->anchors[4 * index];
	float coded[4];

	for (int32_t i = 0; i < 4; i++) {
		coded[i] = real_quotient(detection_real(box[i], p->box_scale, p->box_zero),
					 p->scales[i]);
	}
	const float height = detection_anchor(p, anchor, 2);
	const float width = detection_anchor(p, anchor, 3);
	const float y = real_sum(real_product(coded[0], height), detection_anchor(p, anchor, 0));
	const float x_ = real_sum(real_product(coded[1], width), detection_anchor(p, anchor, 1));
	const float h = real_product(real_product(0.5f, tinyml_expf(coded[2])), height);
	const float w = real_product(real_product(0.5f, tinyml_expf(coded[3])), width);

	return box_corners(real_difference(y, h), real_difference(x_, w), real_sum(y, h),
			   real_sum(x_, w));
}

static float detection_score(const struct tinyml_detection *p, candidates_score score)
{
	return detection_real(score, p->score_scale, p->score_zero);
}

static void detection_store(struct tinyml_detected *y, int32_t at, const struct overlap_box *box,
			    float class, float score)
{
	y->boxes[4 * at] = box->y0;
	y->boxes[4 * at + 1] = box->x0;
	y->boxes[4 * at + 2] = box->y1;
	y->boxes[4 * at + 3] = box->x1;
	y->classes[at] = class;
	y->scores[at] = score;
}

static void detection_clear(struct tinyml_detected *y, int32_t rows)
{
	for (int32_t i = 0; i < rows; i++) {
		const struct overlap_box none = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f};

		detection_store(y, i, &none, 0.0f, 0.0f);
	}
}

/* The results of a box, one for each of its classes. */
static void detection_results(const struct tinyml_detection *p, const struct tinyml_detected *y,
			      int32_t at, int32_t kinds, const struct overlap_box *box,
			      const candidates_score *scores, const int32_t *order)
{
	struct tinyml_detected row = {&y->boxes[4 * at], &y->classes[at], &y->scores[at], NULL};

	for (int32_t k = 0; k < kinds; k++) {
		detection_store(&row, k, box, real_of_int(order[k]),
				detection_score(p, scores[order[k]]));
	}
}

static bool detection_reaches(const struct tinyml_detection *p, float score)
{
	return !real_is_nan(score) && !real_below(score, p->score);
}

/*
 * Decode the best candidate, and choose it if it overlaps none of the `taken` boxes before. The
 * heap has a place for each candidate that has left: the keys of chosen ones go there, from the end
 * on. What becomes of them is done afterwards, in a loop over all that can be chosen: so the bound
 * of the instructions does not count it for every candidate.
 */
__attribute__((noinline)) static void detection_next(const struct tinyml_detection *p,
						     const struct detection_operands *x,
						     struct candidates *left,
						     struct overlap_box *chosen, int32_t most,
						     int32_t turn, int32_t *taken)
{
	const candidates_key key = left->heap[0];
	const int32_t i = candidates_next(left);
	struct overlap_box *box = &chosen[*taken];

	*box = detection_decode(p, x, i);
	if (!overlap_any(chosen, *taken, turn < most ? turn : most - 1, box, p->overlap)) {
		left->heap[p->boxes - 1 - *taken] = key;
		*taken += 1;
	}
}

static void detection_together(const struct tinyml_detection *p, const struct detection_operands *x,
			       struct tinyml_detected *y, struct overlap_box *chosen,
			       candidates_key *heap, int32_t *order)
{
	const int32_t kinds = p->kinds < p->classes ? p->kinds : p->classes;
	struct candidates left = {heap, 0, p->boxes};
	int32_t found = 0;

	detection_clear(y, p->most * p->kinds);
	for (int32_t i = 0; i < p->boxes; i++) {
		const candidates_score *own = &x->scores[i * p->score_stride + p->background];
		const candidates_score best = own[ranking_best(own, p->classes)];

		if (detection_reaches(p, detection_score(p, best))) {
			heap[left.count++] = candidates_make(best, i);
		}
	}
	candidates_order(&left);
	for (int32_t turn = 0; turn < p->boxes; turn++) {
		if (left.count == 0 || found == p->most) {
			break;
		}
		detection_next(p, x, &left, chosen, p->most, turn, &found);
	}
	for (int32_t at = 0; at < p->most && at != found; at++) {
		const int32_t i = candidates_index(heap[p->boxes - 1 - at]);
		const candidates_score *own = &x->scores[i * p->score_stride + p->background];

		if (kinds > 1) {
			ranking_sort(own, p->classes, kinds, order);
		} else {
			order[0] = ranking_best(own, p->classes);
		}
		detection_results(p, y, at * p->kinds, kinds, &chosen[at], own, order);
	}
	*y->count = real_of_int(found);
}

/* Put a box behind all that are not worse; the last one leaves if all places are taken. `own` boxes
 * of its class are among them already, and no more than `others` of other classes: these numbers do
 * not depend on data. */
static int32_t detection_insert(struct tinyml_detected *y, int32_t count, int32_t most, int32_t own,
				int32_t others, const struct overlap_box *box, float class,
				float score)
{
	int32_t at = count < most ? count : most - 1;

	for (int32_t to = own + others; to > own; to--) {
		if (to > at) {
			continue;
		}
		if (!real_below(y->scores[to - 1], score)) {
			break;
		}
		const float *before = &y->boxes[4 * (to - 1)];
		const struct overlap_box moved = {before[0], before[1], before[2], before[3], 0.0f};

		detection_store(y, to, &moved, y->classes[to - 1], y->scores[to - 1]);
		at = to - 1;
	}
	detection_store(y, at, box, class, score);
	return count < most ? count + 1 : count;
}

/* Whether a box would be among the results, if `taken` of its class that are not worse are as well:
 * they have driven out the last ones. */
static bool detection_fits(const struct tinyml_detection *p, const struct tinyml_detected *y,
			   int32_t found, int32_t taken, float score)
{
	if (found + taken < p->most) {
		return true;
	}
	return taken < p->most && real_below(y->scores[p->most - 1 - taken], score);
}

static void detection_by_class(const struct tinyml_detection *p, const struct detection_operands *x,
			       struct tinyml_detected *y, struct overlap_box *chosen,
			       candidates_key *heap)
{
	const int32_t per_class = p->per_class < p->most ? p->per_class : p->most;
	int32_t found = 0;

	detection_clear(y, p->most * p->kinds);
	for (int32_t class = 0; class < p->classes && p->most > 0; class ++) {
		const int32_t before = class * per_class; /* or fewer results */
		const candidates_score *own = &x->scores[p->background + class];
		struct candidates left = {heap, 0, p->boxes};
		int32_t taken = 0;

		for (int32_t i = 0; i < p->boxes; i++) {
			const candidates_score score = own[i * p->score_stride];
			const float real = detection_score(p, score);

			/* when all places are taken, the others have no chance */
			if (detection_reaches(p, real) && detection_fits(p, y, found, 0, real)) {
				heap[left.count++] = candidates_make(score, i);
			}
		}
		candidates_order(&left);
		for (int32_t turn = 0; turn < p->boxes; turn++) {
			if (left.count == 0 || taken == per_class) {
				break;
			}
			const int32_t i = candidates_index(heap[0]);
			const float score = detection_score(p, own[i * p->score_stride]);

			if (!detection_fits(p, y, found, taken, score)) {
				break;
			}
			detection_next(p, x, &left, chosen, per_class, turn, &taken);
		}
		for (int32_t at = 0; at < per_class && at != taken; at++) {
			const int32_t i = candidates_index(heap[p->boxes - 1 - at]);
			const float score = detection_score(p, own[i * p->score_stride]);
			const int32_t room = p->most - 1 - at;

			found = detection_insert(y, found, p->most, at,
						 before < room ? before : room, &chosen[at],
						 real_of_int(class), score);
		}
	}
	*y->count = real_of_int(found);
}

#endif /* TINYML_DETECTION_H_ */
