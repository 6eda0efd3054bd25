/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/half_weights.h>

#define TINYML_HALF_WEIGHTS 1
#define DENSE_PARAMS        struct tinyml_dense_f32_f16
#include "dense_rows_f32.h"

void tinyml_dense_f32_f16(const struct tinyml_dense_f32_f16 *p, const float *x, float *y)
{
	dense_rows_f32(p, x, y);
}
