/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>

#define CANDIDATE_BYTES

#include "real.h"

static inline float nms_real(int8_t value, float scale, int32_t zero)
{
	return real_scaled(value - zero, scale);
}

#include "nms.h"

int tinyml_nms_s8(const struct tinyml_nms *p, struct tinyml_nms_limits limits, const int8_t *boxes,
		  const int8_t *scores, int64_t *y, int64_t *count, void *chosen, void *heap)
{
	return nms_choose(p, limits, boxes, scores, y, count, chosen, heap);
}
