/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/conv_s16.h>

static int16_t finish(const struct tinyml_conv_s16 *p, int64_t sum, int32_t oc)
{
	sum += p->bias != NULL ? p->bias[oc] : 0;
	return tinyml_narrow_s64(sum, p->multiplier[oc], p->shift[oc], p->out_min, p->out_max);
}

#define CONV_NAME   tinyml_conv_s16
#define CONV_PARAMS struct tinyml_conv_s16
#define CONV_X      int16_t
#define CONV_WEIGHT int8_t
#define CONV_SUM    int64_t
#include "conv_loops.h"
