/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The kernel of the operator MexicanHat. It becomes part of the model's own source, so it is
 * static. */

#include <tinyml/maths.h>

static void mexican_hat_f32(const float *x, int32_t count, float width, float *y)
{
	for (int32_t i = 0; i < count; i++) {
		const float t = x[i] / width;

		y[i] = (1.0f - t * t) * tinyml_expf(-0.5f * t * t);
	}
}
