/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "accuracy.h"

#include "inputs.h" /* of the digits sample */

static unsigned int largest(const float *values, unsigned int count)
{
	unsigned int best = 0;

	for (unsigned int i = 1; i < count; i++) {
		best = values[i] > values[best] ? i : best;
	}
	return best;
}

int images_right(const struct tinyml_model *model)
{
	int right = 0;

	for (size_t i = 0; i < sizeof(held_back) / sizeof(held_back[0]); i++) {
		float *pixels = model->inputs[0].data;
		int status;

		for (size_t j = 0; j < sizeof(held_back[i].pixels); j++) {
			pixels[j] = (float)held_back[i].pixels[j] / 16.0f;
		}
		status = model->run();
		if (status != 0) {
			return status;
		}
		right += largest(model->outputs[0].data, 10) == held_back[i].label;
	}
	return right;
}
