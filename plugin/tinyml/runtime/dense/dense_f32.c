/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/dense.h>

#define DENSE_PARAMS struct tinyml_dense_f32
#include "dense_rows_f32.h"

void tinyml_dense_f32(const struct tinyml_dense_f32 *p, const float *x, float *y)
{
	dense_rows_f32(p, x, y);
}
