/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/conv.h>

static float finish(const struct tinyml_conv_f32 *p, float sum, int32_t oc)
{
	sum += p->bias != NULL ? p->bias[oc] : 0.0f;
	sum = sum < p->out_min ? p->out_min : sum;
	return sum > p->out_max ? p->out_max : sum;
}

#define CONV_NAME   tinyml_conv_f32
#define CONV_PARAMS struct tinyml_conv_f32
#define CONV_WEIGHT float
#include "conv_loops.h"
