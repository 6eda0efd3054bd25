/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds the people in the pictures of a camera and draws their boxes on the console. How many
 * there are is known at run time only: the model has room for four, and says how many it found.
 */

#include <stdio.h>
#include <string.h>

#include <zephyr/device.h>
#include <zephyr/kernel.h>

#include <people.h>

#include "camera.h"
#include "drawing.h"
#include "shrink.h"

#define RATE 2 /* pictures a second */

BUILD_ASSERT(PEOPLE_INPUT_BYTES == COLUMNS * ROWS, "the model takes pictures of another size");
BUILD_ASSERT(PEOPLE_INPUT_ZERO_POINT == -128, "the model takes other brightnesses than 0 to 255");

/* Middle, width and height of a person, as the model gives them, as corners in the drawing. */
static struct box box_of(const float *person)
{
	return (struct box){
		.left = (int)(person[0] - person[2] / 2),
		.top = (int)(person[1] - person[3] / 2),
		.right = (int)(person[0] + person[2] / 2),
		.bottom = (int)(person[1] + person[3] / 2),
	};
}

/* Where everybody is; the drawing only when somebody came or went. */
static void show(const struct camera *camera, struct drawing *drawing)
{
	static int before;
	const int count = (int)people_output_boxes_count()[0];

	printf("%u.%u s: %d %s\n", camera->pictures / RATE, camera->pictures % RATE * 10 / RATE,
	       count, count == 1 ? "person" : "people");
	for (int i = 0; i < count; i++) {
		const struct box box = box_of(&people_output_boxes()[4 * i]);

		printf("  columns %d to %d, rows %d to %d (%d %%)\n", box.left, box.right, box.top,
		       box.bottom, (int)(people_output_scores()[i] * 100.0f));
		drawing_add(drawing, &box);
	}
	if (count != before && count > 0) {
		drawing_print(drawing);
	}
	before = count;
}

int main(void)
{
	static struct drawing drawing;
	struct camera camera = {
		.device = DEVICE_DT_GET(DT_CHOSEN(zephyr_camera)),
		.least_width = COLUMNS,
		.least_height = ROWS,
		.rate = RATE,
	};
	struct picture picture;

	if (camera_start(&camera, &picture) != 0) {
		return 1;
	}
	printf("people: pictures of %ux%u, %d a second\n", picture.width, picture.height, RATE);
	while (camera_take(&camera, &picture) == 0) {
		shrink(&picture, people_input(), COLUMNS, ROWS);
		camera_give_back(&camera);               /* before the run: the camera goes on */
		drawing_begin(&drawing, people_input()); /* the run may write over its input */
		if (people_run() != 0) {
			return 1;
		}
		show(&camera, &drawing);
	}
	printf("the camera has stopped: %u pictures, %u lost\n", camera.pictures, camera.lost);
	return 0;
}
