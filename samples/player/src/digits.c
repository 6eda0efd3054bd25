/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "digits.h"

#include "inputs.h" /* of the digits sample */

#define CLASSES 10

_Static_assert(DIGITS == sizeof(held_back) / sizeof(held_back[0]),
	       "as many as the digits sample has");

void digits_show(const struct tinyml_model *model, unsigned int image)
{
	float *pixels = model->inputs[0].data;

	for (size_t i = 0; i < sizeof(held_back[image].pixels); i++) {
		pixels[i] = (float)held_back[image].pixels[i] / 16.0f;
	}
}

int digits_right(const struct tinyml_model *model)
{
	int right = 0;

	for (unsigned int i = 0; i < DIGITS; i++) {
		const float *scores = model->outputs[0].data;
		unsigned int best = 0;
		int error;

		digits_show(model, i);
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
