/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Two layers that choose boxes: the first with few, whose totals are stated, the second with more
 * than totals are stated for. Built with assertions, the second must not be held to what the first
 * left. */

#include <stdlib.h>

#include <tinyml/boxes.h>

#define MANY 32768

static float boxes[4 * MANY], scores[MANY];
static float chosen[5 * MANY];
static int64_t queue[MANY];
static int32_t since[MANY];

/* With a sigma or without. */
static void choose(int32_t count, float scale)
{
	int32_t indices[3], found;
	float kept[3];
	const struct tinyml_suppression p = {count, 3, scale};
	const struct tinyml_suppression_limits limits = {1.0f, 0.0f};
	const struct tinyml_suppressed y = {indices, kept, &found};

	if (scale < 0.0f) {
		tinyml_soft_suppression_f32(&p, limits, boxes, scores, y, chosen, queue, since);
	} else {
		tinyml_suppression_f32(&p, limits, boxes, scores, y, chosen, queue);
	}
	if (found != 3) {
		exit(1);
	}
}

int main(void)
{
	for (int32_t i = 0; i < MANY; i++) {
		boxes[4 * i] = (float)i / MANY;
		boxes[4 * i + 2] = (float)i / MANY + 1.0f;
		boxes[4 * i + 3] = 1.0f;
		scores[i] = 1.0f + (float)i / MANY;
	}
	for (int32_t soft = 0; soft < 2; soft++) {
		choose(4, soft ? -0.1f : 0.0f);
		choose(MANY, soft ? -0.1f : 0.0f);
	}
	return 0;
}
