/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>

static inline float nms_real(float value, float scale, int32_t zero)
{
	(void)scale;
	(void)zero;
	return value;
}

#include "nms.h"

int tinyml_nms_f32(const struct tinyml_nms *p, struct tinyml_nms_limits limits, const float *boxes,
		   const float *scores, int64_t *y, int64_t *count, void *chosen, void *heap)
{
	return nms_choose(p, limits, boxes, scores, y, count, chosen, heap);
}
