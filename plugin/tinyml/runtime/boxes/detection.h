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

#include <tinyml/boxes.h>
#include <tinyml/maths.h>

#include "candidates.h"
#include "overlap.h"

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
		coded[i] = detection_real(box[i], p->box_scale, p->box_zero) / p->scales[i];
	}
	const float height = detection_anchor(p, anchor, 2);
	const float width = detection_anchor(p, anchor, 3);
	const float y = coded[0] * height + detection_anchor(p, anchor, 0);
	const float x_ = coded[1] * width + detection_anchor(p, anchor, 1);
	const float h = 0.5f * tinyml_expf(coded[2]) * height;
	const float w = 0.5f * tinyml_expf(coded[3]) * width;

	return overlap_corners(y - h, x_ - w, y + h, x_ + w);
}

static float detection_score(const struct tinyml_detection *p, candidates_score score)
{
	return detection_real(score, p->score_scale, p->score_zero);
}

static void detection_store(struct tinyml_detected *y, int32_t at, const struct overlap_box *box,
			    int32_t class, float score)
{
	y->boxes[4 * at] = box->y0;
	y->boxes[4 * at + 1] = box->x0;
	y->boxes[4 * at + 2] = box->y1;
	y->boxes[4 * at + 3] = box->x1;
	y->classes[at] = (float)class;
	y->scores[at] = score;
}

static void detection_clear(struct tinyml_detected *y, int32_t rows)
{
	for (int32_t i = 0; i < rows; i++) {
		const struct overlap_box none = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f};

		detection_store(y, i, &none, 0, 0.0f);
	}
}

/* The first of the best scores. */
static int32_t detection_best(const candidates_score *scores, int32_t count)
{
	int32_t best = 0;

	for (int32_t i = 1; i < count; i++) {
		if (scores[i] > scores[best]) {
			best = i;
		}
	}
	return best;
}

/* Move a hole in a heap, whose root is the worst, down to a leaf, and `class` from there upwards.
 * `low` and `high` are the least and the largest place that it can have, which do not depend on
 * data: so there is a bound of the instructions. */
static void detection_settle(const candidates_score *scores, int32_t *heap, int32_t count,
			     int32_t at, int32_t class)
{
	const int32_t top = at;
	int32_t child = 2 * at + 2;

	for (int32_t low = child; low < count && child < count; low *= 2) {
		if (scores[heap[child]] > scores[heap[child - 1]]) {
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
		if (at <= top || !(scores[heap[(at - 1) / 2]] > scores[class])) {
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
static void detection_rank(const candidates_score *scores, int32_t count, int32_t kinds,
			   int32_t *order)
{
	for (int32_t i = 0; i < kinds; i++) {
		order[i] = i;
	}
	for (int32_t i = kinds / 2 - 1; i >= 0; i--) {
		detection_settle(scores, order, kinds, i, order[i]);
	}
	for (int32_t i = kinds; i < count; i++) {
		if (scores[i] > scores[order[0]]) {
			detection_settle(scores, order, kinds, 0, i);
		}
	}
	for (int32_t i = kinds - 1; i > 0; i--) {
		const int32_t class = order[i];

		order[i] = order[0];
		detection_settle(scores, order, i, 0, class);
	}
}

/* The results of a box, one for each of its classes. */
static void detection_results(const struct tinyml_detection *p, const struct tinyml_detected *y,
			      int32_t at, int32_t kinds, const struct overlap_box *box,
			      const candidates_score *scores, const int32_t *order)
{
	struct tinyml_detected row = {&y->boxes[4 * at], &y->classes[at], &y->scores[at], NULL};

	for (int32_t k = 0; k < kinds; k++) {
		detection_store(&row, k, box, order[k], detection_score(p, scores[order[k]]));
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
		const candidates_score best = own[detection_best(own, p->classes)];

		if (detection_score(p, best) >= p->score) {
			heap[left.count++] = candidates_make(best, i);
		}
	}
	candidates_order(&left);
	for (int32_t turn = 0; turn < p->boxes; turn++) {
		if (left.count == 0 || found == p->most) {
			break;
		}
		const int32_t i = candidates_next(&left);
		const candidates_score *own = &x->scores[i * p->score_stride + p->background];
		struct overlap_box *box = &chosen[found];

		*box = detection_decode(p, x, i);
		if (overlap_any(chosen, found, turn < p->most ? turn : p->most - 1, box,
				p->overlap)) {
			continue;
		}
		if (kinds > 1) {
			detection_rank(own, p->classes, kinds, order);
		} else {
			order[0] = detection_best(own, p->classes);
		}
		detection_results(p, y, found * p->kinds, kinds, box, own, order);
		found++;
	}
	*y->count = (float)found;
}

/* Put a box behind all that are not worse; the last one leaves if all places are taken. */
static int32_t detection_insert(struct tinyml_detected *y, int32_t count, int32_t most,
				const struct overlap_box *box, int32_t class, float score)
{
	int32_t at = count;

	if (count == most) {
		at--;
	} else {
		count++;
	}
	for (; at > 0 && y->scores[at - 1] < score; at--) {
		const float *before = &y->boxes[4 * (at - 1)];
		const struct overlap_box moved = {before[0], before[1], before[2], before[3], 0.0f};

		detection_store(y, at, &moved, (int32_t)y->classes[at - 1], y->scores[at - 1]);
	}
	detection_store(y, at, box, class, score);
	return count;
}

static void detection_by_class(const struct tinyml_detection *p, const struct detection_operands *x,
			       struct tinyml_detected *y, struct overlap_box *chosen,
			       candidates_key *heap)
{
	int32_t found = 0;

	detection_clear(y, p->most * p->kinds);
	for (int32_t class = 0; class < p->classes && p->most > 0; class ++) {
		const candidates_score *own = &x->scores[p->background + class];
		struct candidates left = {heap, 0, p->boxes};
		int32_t taken = 0;

		for (int32_t i = 0; i < p->boxes; i++) {
			const candidates_score score = own[i * p->score_stride];
			const float real = detection_score(p, score);

			/* when all places are taken, the others have no chance */
			if (real >= p->score &&
			    (found < p->most || real > y->scores[p->most - 1])) {
				heap[left.count++] = candidates_make(score, i);
			}
		}
		candidates_order(&left);
		while (left.count > 0 && taken < p->per_class) {
			const int32_t i = candidates_next(&left);
			const float score = detection_score(p, own[i * p->score_stride]);
			struct overlap_box *box = &chosen[taken];

			if (found == p->most && !(score > y->scores[p->most - 1])) {
				break;
			}
			*box = detection_decode(p, x, i);
			if (!overlap_any(chosen, taken, taken, box, p->overlap)) {
				taken++;
				found = detection_insert(y, found, p->most, box, class, score);
			}
		}
	}
	*y->count = (float)found;
}

#endif /* TINYML_DETECTION_H_ */
