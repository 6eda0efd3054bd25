/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * ONNX's NonMaxSuppression, for nms_f32.c and nms_s8.c: these define nms_real(), which makes a real
 * number of an element.
 */

#ifndef TINYML_NMS_H_
#define TINYML_NMS_H_

#include <tinyml/boxes.h>
#include <tinyml/tinyml.h>

#include "candidates.h"
#include "overlap.h"

#define NMS_COUNTED 0x7fff /* larger numbers have products that are too large */

static struct overlap_box nms_box(const struct tinyml_nms *p, const candidates_score *box)
{
	const float a = nms_real(box[0], p->box_scale, p->box_zero);
	const float b = nms_real(box[1], p->box_scale, p->box_zero);
	const float c = nms_real(box[2], p->box_scale, p->box_zero);
	const float d = nms_real(box[3], p->box_scale, p->box_zero);

	if (p->center) {
		const float w = real_product(c, 0.5f);
		const float h = real_product(d, 0.5f);

		return box_corners(real_difference(b, h), real_difference(a, w), real_sum(b, h),
				   real_sum(a, w));
	}
	return box_corners(real_below(a, c) ? a : c, real_below(b, d) ? b : d,
			   real_below(a, c) ? c : a, real_below(b, d) ? d : b);
}

/* The boxes of a class that may be chosen. */
static struct candidates nms_collect(const struct tinyml_nms *p,
				     const struct tinyml_nms_limits *limits,
				     const candidates_score *scores, candidates_key *heap)
{
	struct candidates all = {heap, 0, p->boxes};

	for (int32_t i = 0; i < p->boxes && i != limits->boxes; i++) {
		const float score = nms_real(scores[i], p->score_scale, p->score_zero);

		if (p->scored ? real_below(limits->score, score) : !real_is_nan(score)) {
			heap[all.count++] = candidates_make(scores[i], i);
		}
	}
	candidates_order(&all);
	return all;
}

/* How many boxes can be chosen before another one is, as far as it does not depend on data. */
static inline int32_t nms_most(const struct tinyml_nms *p, const struct tinyml_nms_limits *limits)
{
	const int32_t per_class = p->per_class > 0 ? p->per_class : limits->per_class;

	return per_class <= p->most ? per_class - 1 : p->most;
}

/*
 * If all classes together can have more results than there are rows: box number n of a class is
 * compared with up to n others, and with no more than the class has results, of which there are
 * `rows` in all. Most comparisons happen if the classes share them equally, and have them early.
 */
static void nms_totals(const struct tinyml_nms *p, int32_t most)
{
	const int32_t groups = p->batches * p->classes;
	int32_t rows = p->most;
	int32_t turns = 0;

	TINYML_FORGET_TOTAL(overlap_any);
	if (p->boxes > NMS_COUNTED || groups > NMS_COUNTED || rows > NMS_COUNTED ||
	    groups * most <= rows) {
		return;
	}
	for (int32_t others = p->boxes - 1; rows > 0; others--) {
		turns += (rows < groups ? rows : groups) * others;
		rows -= groups;
	}
	turns_of_overlap_any(turns);
}

struct nms_results {
	int64_t *y;
	int32_t rows;
};

/* Choose among boxes, by the scores of one class. Returns false if there is no row for a result. */
__attribute__((noinline)) static bool
nms_class(const struct tinyml_nms *p, const struct tinyml_nms_limits *limits,
	  const candidates_score *boxes, struct candidates *left, struct overlap_box *chosen,
	  int32_t batch, int32_t class, struct nms_results *to)
{
	const int32_t most = nms_most(p, limits);
	int32_t found = 0;

	/* before a turn, no more boxes are chosen than there were turns */
	for (int32_t turn = 0; turn < p->boxes; turn++) {
		if (left->count == 0 || found == limits->per_class) {
			break;
		}
		const int32_t i = candidates_next(left);

		chosen[found] = nms_box(p, &boxes[4 * i]);
		if (overlap_any(chosen, found, turn < most ? turn : most, &chosen[found],
				limits->overlap)) {
			continue;
		}
		if (to->rows == p->most) {
			return false;
		}
		found++;
		to->y[3 * to->rows] = batch;
		to->y[3 * to->rows + 1] = class;
		to->y[3 * to->rows + 2] = i;
		to->rows++;
	}
	return true;
}

static int nms_choose(const struct tinyml_nms *p, struct tinyml_nms_limits limits,
		      const candidates_score *boxes, const candidates_score *scores, int64_t *y,
		      int64_t *count, struct overlap_box *chosen, candidates_key *heap)
{
	struct nms_results to = {y, 0};
	bool fits = true;

	nms_totals(p, nms_most(p, &limits));
	for (int32_t b = 0; b < p->batches && fits; b++) {
		for (int32_t c = 0; c < p->classes && fits; c++) {
			const candidates_score *own = &scores[(b * p->classes + c) * p->boxes];
			struct candidates left = nms_collect(p, &limits, own, heap);

			fits = nms_class(p, &limits, &boxes[4 * b * p->boxes], &left, chosen, b, c,
					 &to);
		}
	}
	*count = to.rows;
	for (int32_t i = 0; i < p->most; i++) {
		if (i >= to.rows) {
			y[3 * i] = 0;
			y[3 * i + 1] = 0;
			y[3 * i + 2] = 0;
		}
	}
	return fits ? 0 : TINYML_EBOUND;
}

#endif /* TINYML_NMS_H_ */
