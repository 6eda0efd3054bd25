/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>

static inline float detection_real(float value, float scale, int32_t zero)
{
	(void)scale;
	(void)zero;
	return value;
}

#include "detection.h"

void tinyml_detection_f32(const struct tinyml_detection *p, const float *boxes, const float *scores,
			  const float *anchors, struct tinyml_detected y, void *chosen, void *heap,
			  int32_t *order)
{
	const struct detection_operands x = {boxes, scores, anchors};

	detection_together(p, &x, &y, chosen, heap, order);
}

void tinyml_detection_classes_f32(const struct tinyml_detection *p, const float *boxes,
				  const float *scores, const float *anchors,
				  struct tinyml_detected y, void *chosen, void *heap)
{
	const struct detection_operands x = {boxes, scores, anchors};

	detection_by_class(p, &x, &y, chosen, heap);
}
