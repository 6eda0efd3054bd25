/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "digits.h"

#include "inputs.h" /* of the digits sample */

#define CLASSES 10

int digits_right(const struct tinyml_model *model)
{
	int right = 0;

	for (size_t i = 0; i < sizeof(held_back) / sizeof(held_back[0]); i++) {
		float *pixels = model->inputs[0].data;
		const float *scores = model->outputs[0].data;
		unsigned int best = 0;
		int error;

		for (size_t j = 0; j < sizeof(held_back[i].pixels); j++) {
			pixels[j] = (float)held_back[i].pixels[j] / 16.0f;
		}
		error = model->run();
		if (error != 0) {
			return error;
		}
		for (unsigned int j = 1; j < CLASSES; j++) {
			best = scores[j] > scores[best] ? j : best;
		}
		right += best == held_back[i].label;
	}
	return right;
}
