/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Classifies images that were not used in training and prints the results. The outputs must equal
 * those computed on the host, byte for byte.
 */

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <zephyr/toolchain.h>

#include <digits.h>

#include "inputs.h"

/* What this code expects of the model. A model that differs fails the build, with these words. */
BUILD_ASSERT(DIGITS_INPUT_TYPE == TINYML_FLOAT32 && DIGITS_INPUT_ELEMENTS == 8 * 8,
	     "the model takes something else than an image of 8x8 floats");
BUILD_ASSERT(DIGITS_OUTPUT_TYPE == TINYML_FLOAT32 && DIGITS_OUTPUT_ELEMENTS == 10,
	     "the model gives something else than a float for each of ten digits");

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static unsigned int largest(const float *values, unsigned int count)
{
	unsigned int best = 0;

	for (unsigned int i = 1; i < count; i++) {
		if (values[i] > values[best]) {
			best = i;
		}
	}
	return best;
}

/* Run the model on one image. The logits stay valid until the next run. */
static const float *classify(const struct digit *digit)
{
	float *input = digits_input();

	for (size_t i = 0; i < ARRAY_LENGTH(digit->pixels); i++) {
		input[i] = (float)digit->pixels[i] / 16.0f;
	}
	return digits_run() == 0 ? digits_output() : NULL;
}

int main(void)
{
	unsigned int right = 0;
	unsigned int different = 0;

	for (size_t i = 0; i < ARRAY_LENGTH(held_back); i++) {
		const struct digit *digit = &held_back[i];
		const float *logits = classify(digit);

		if (logits == NULL) {
			printf("image %u: the model failed to run\n", (unsigned int)i);
			different++;
			continue;
		}

		unsigned int prediction = largest(logits, ARRAY_LENGTH(digit->logits));
		bool same = memcmp(logits, digit->logits, sizeof(digit->logits)) == 0;

		printf("image %u: %u, label %u%s%s\n", (unsigned int)i, prediction, digit->label,
		       prediction == digit->label ? "" : " (wrong)",
		       same ? "" : ", output differs from the host's");
		right += prediction == digit->label;
		different += !same;
	}

	printf("%s: %u of %u outputs differ\n", different == 0 ? "PASS" : "FAIL", different,
	       (unsigned int)ARRAY_LENGTH(held_back));
	printf("digits: %u of %u right\n", right, (unsigned int)ARRAY_LENGTH(held_back));
	return different == 0 ? 0 : 1;
}
