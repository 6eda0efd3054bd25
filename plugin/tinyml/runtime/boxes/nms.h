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

static struct overlap_box nms_box(const struct tinyml_nms *p, const candidates_score *box)
{
	const float a = nms_real(box[0], p->box_scale, p->box_zero);
	const float b = nms_real(box[1], p->box_scale, p->box_zero);
	const float c = nms_real(box[2], p->box_scale, p->box_zero);
	const float d = nms_real(box[3], p->box_scale, p->box_zero);

	if (p->center) {
		const float w = c / 2.0f;
		const float h = d / 2.0f;

		return (struct overlap_box){b - h, a - w, b + h, a + w};
	}
	return (struct overlap_box){
		a < c ? a : c,
		b < d ? b : d,
		a < c ? c : a,
		b < d ? d : b,
	};
}

/* The boxes of a class that may be chosen, in a heap; returns how many. */
static int32_t nms_collect(const struct tinyml_nms *p, const struct tinyml_nms_limits *limits,
			   const candidates_score *scores, candidates_key *heap)
{
	int32_t count = 0;

	for (int32_t i = 0; i < limits->boxes; i++) {
		const float score = nms_real(scores[i], p->score_scale, p->score_zero);

		if (p->scored ? score > limits->score : score == score) {
			heap[count++] = candidates_make(scores[i], i);
		}
	}
	candidates_order(heap, count);
	return count;
}

static int nms_choose(const struct tinyml_nms *p, struct tinyml_nms_limits limits,
		      const candidates_score *boxes, const candidates_score *scores, int64_t *y,
		      int64_t *count, struct overlap_box *chosen, candidates_key *heap)
{
	int32_t rows = 0;
	int status = 0;

	for (int32_t b = 0; b < p->batches && status == 0; b++) {
		for (int32_t c = 0; c < p->classes && status == 0; c++) {
			const candidates_score *own = &scores[(b * p->classes + c) * p->boxes];
			int32_t left = nms_collect(p, &limits, own, heap);
			int32_t found = 0;

			while (left > 0 && found < limits.per_class) {
				const int32_t i = candidates_next(heap, left--);

				chosen[found] = nms_box(p, &boxes[4 * (b * p->boxes + i)]);
				if (overlap_any(chosen, found, &chosen[found], limits.overlap)) {
					continue;
				}
				if (rows == p->most) {
					status = TINYML_EBOUND;
					break;
				}
				found++;
				y[3 * rows] = b;
				y[3 * rows + 1] = c;
				y[3 * rows + 2] = i;
				rows++;
			}
		}
	}
	*count = rows;
	for (int32_t i = 3 * rows; i < 3 * p->most; i++) {
		y[i] = 0;
	}
	return status;
}

#endif /* TINYML_NMS_H_ */
