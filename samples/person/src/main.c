/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tells whether a person is in the picture of a camera. The model needs a small part of what the
 * camera gives: pictures are shrunk straight into its input, and their buffers go back at once.
 */

#include <stdio.h>

#include <zephyr/device.h>
#include <zephyr/kernel.h>

#include <tinyml/decision.h>

#include <person.h>

#include "camera.h"
#include "shrink.h"

#define SIDE 32 /* rows and columns of the model's input */
#define RATE 5  /* pictures a second */

BUILD_ASSERT(PERSON_INPUT_BYTES == SIDE * SIDE, "the model takes pictures of another size");
BUILD_ASSERT(PERSON_INPUT_ZERO_POINT == -128, "the model takes other brightnesses than 0 to 255");

enum {
	NOBODY,
	PERSON,
	CLASSES,
};

TINYML_DECISION(decision, CLASSES, 2); /* averaged over two pictures */

int main(void)
{
	struct camera camera = {
		.device = DEVICE_DT_GET(DT_CHOSEN(zephyr_camera)),
		.least_width = SIDE,
		.least_height = SIDE,
		.rate = RATE,
	};
	struct picture picture;
	bool was_there = false;

	decision.on = TINYML_SCORE(0.8);
	decision.off = TINYML_SCORE(0.5);
	decision.ignored = BIT(NOBODY);

	if (camera_start(&camera, &picture) != 0) {
		return 1;
	}
	printf("person: pictures of %ux%u, %d a second\n", picture.width, picture.height, RATE);
	while (camera_take(&camera, &picture) == 0) {
		shrink(&picture, person_input(), SIDE, SIDE);
		camera_give_back(&camera); /* before the run: the camera goes on */
		k_msleep(CONFIG_PERSON_PAUSE_MS);
		if (person_run() != 0) {
			return 1;
		}
		(void)tinyml_decide(&decision, &person_model.outputs[0]);
		if (was_there != (decision.active == PERSON)) {
			was_there = !was_there;
			printf("%u.%u s: %s (%d %%)\n", camera.pictures / RATE,
			       camera.pictures % RATE * 10 / RATE,
			       was_there ? "somebody is there" : "nobody is there",
			       (int)(tinyml_decision_average(&decision, PERSON) * 100 / 32768));
		}
	}
	printf("the camera has stopped: %u pictures, %u lost\n", camera.pictures, camera.lost);
	return 0;
}
