/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>

#define CANDIDATE_BYTES

#include "real.h"

static inline float detection_real(int8_t value, float scale, int32_t zero)
{
	return real_scaled(value - zero, scale);
}

#include "detection.h"

void tinyml_detection_s8(const struct tinyml_detection *p, const int8_t *boxes,
			 const int8_t *scores, const int8_t *anchors, struct tinyml_detected y,
			 void *chosen, void *heap, int32_t *order)
{
	const struct detection_operands x = {boxes, scores, anchors};

	detection_together(p, &x, &y, chosen, heap, order);
}

void tinyml_detection_classes_s8(const struct tinyml_detection *p, const int8_t *boxes,
				 const int8_t *scores, const int8_t *anchors,
				 struct tinyml_detected y, void *chosen, void *heap)
{
	const struct detection_operands x = {boxes, scores, anchors};

	detection_by_class(p, &x, &y, chosen, heap);
}
