/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Turns readings of a thermistor into degrees, with a network that has an operator of our own. */

#include <stdio.h>

#include <curve.h>

static const float readings[] = {0.08f, 0.2f, 0.35f, 0.5f, 0.65f, 0.8f, 0.92f};

/* printf() of small C libraries knows no floats. */
static int tenths(float value)
{
	return (int)(value * 10.0f + (value < 0.0f ? -0.5f : 0.5f));
}

int main(void)
{
	for (size_t i = 0; i < sizeof(readings) / sizeof(readings[0]); i++) {
		curve_input()[0] = readings[i];
		if (curve_run() != 0) {
			printf("the model failed to run\n");
			return 1;
		}

		const int found = tenths(curve_output()[0]);
		const int whole = found < 0 ? -found : found;

		printf("reading 0.%02d: %s%d.%d degrees\n", (int)(readings[i] * 100.0f + 0.5f),
		       found < 0 ? "-" : "", whole / 10, whole % 10);
	}
	printf("custom_operator: done\n");
	return 0;
}
