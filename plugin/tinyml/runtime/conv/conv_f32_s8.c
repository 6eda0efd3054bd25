/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/byte_weights.h>

static float conv_loops_finish(const struct tinyml_conv_f32_s8 *p, float sum, int32_t oc)
{
	sum = sum * p->scales[oc] + (p->bias != NULL ? p->bias[oc] : 0.0f);
	sum = sum < p->out_min ? p->out_min : sum;
	return sum > p->out_max ? p->out_max : sum;
}

static inline void conv_loops_add_tile(const float *x, const int8_t *filters, int32_t count,
				       int32_t together, float *sums)
{
	(void)x, (void)filters, (void)count, (void)together, (void)sums; /* there are no tiles */
}

#define CONV_NAME   tinyml_conv_f32_s8
#define CONV_PARAMS struct tinyml_conv_f32_s8
#define CONV_WEIGHT int8_t
#define CONV_TILE   1
#include "conv_loops.h"
