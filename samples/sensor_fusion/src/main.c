/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Decides from the values of thirteen sensors, with a random forest. */

#include <stdio.h>
#include <string.h>

#include <wine.h>

#include "values.h"

#define COUNT (sizeof(wines) / sizeof(wines[0]))

_Static_assert(sizeof(wines[0].values) == WINE_INPUT_BYTES, "the model takes other values");

int main(void)
{
	unsigned int right = 0;

	for (size_t i = 0; i < COUNT; i++) {
		memcpy(wine_input(), wines[i].values, WINE_INPUT_BYTES);
		if (wine_run() != 0) {
			printf("wine %u: the model failed to run\n", (unsigned int)i);
			return 1;
		}

		const int cultivar = (int)wine_output_label()[0];
		const int tenths =
			(int)(wine_output_probabilities()[cultivar] * 1000.0f + 0.5f); /* of 1 % */

		printf("wine %u: cultivar %d (%d.%d %%)%s\n", (unsigned int)i, cultivar,
		       tenths / 10, tenths % 10, cultivar == wines[i].cultivar ? "" : ", wrong");
		right += cultivar == wines[i].cultivar;
	}
	printf("sensor_fusion: %u of %u right\n", right, (unsigned int)COUNT);
	return 0;
}
