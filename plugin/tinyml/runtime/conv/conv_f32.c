/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/conv.h>

#include "../weighted/tile_f32.h"

static float conv_loops_finish(const struct tinyml_conv_f32 *p, float sum, int32_t oc)
{
	sum += p->bias != NULL ? p->bias[oc] : 0.0f;
	sum = sum < p->out_min ? p->out_min : sum;
	return sum > p->out_max ? p->out_max : sum;
}

static inline void conv_loops_add_tile(const float *x, const float *filters, int32_t count,
				       int32_t together, float *sums)
{
	if (together == TINYML_TILE) {
		tinyml_tile_f32(x, filters, count, sums);
	} else {
		tinyml_tile4_f32(x, filters, count, sums);
	}
}

#define CONV_NAME   tinyml_conv_f32
#define CONV_PARAMS struct tinyml_conv_f32
#define CONV_WEIGHT float
#define CONV_TILE   TINYML_TILE
#include "conv_loops.h"
