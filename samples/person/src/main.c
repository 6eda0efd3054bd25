/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tells whether a person is in the picture of a camera. The model needs a small part of what the
 * camera gives: pictures are shrunk straight into its input, and their buffers go back at once.
 */

#include <stdio.h>

#include <zephyr/device.h>
#include <zephyr/drivers/video.h>
#include <zephyr/kernel.h>

#include <tinyml/decision.h>

#include <person.h>

#include "shrink.h"

#define SIDE    32           /* rows and columns of the model's input */
#define RATE    5            /* pictures a second */
#define SILENCE K_SECONDS(2) /* without a picture: the camera has stopped */
#define BUFFERS CONFIG_VIDEO_BUFFER_POOL_NUM_MAX

BUILD_ASSERT(PERSON_INPUT_BYTES == SIDE * SIDE, "the model takes pictures of another size");
BUILD_ASSERT(PERSON_INPUT_ZERO_POINT == -128, "the model takes other brightnesses than 0 to 255");

enum {
	NOBODY,
	PERSON,
	CLASSES,
};

TINYML_DECISION(decision, CLASSES, 2); /* averaged over two pictures */

static const struct {
	uint32_t format;
	enum pixels pixels;
} known[] = {
	{VIDEO_PIX_FMT_GREY, PIXELS_GREY},
	{VIDEO_PIX_FMT_YUYV, PIXELS_YUYV},
	{VIDEO_PIX_FMT_RGB565, PIXELS_RGB565},
};

/* The smallest pictures of the camera that the model can use. */
static int choose_format(const struct device *camera, struct video_format *format,
			 enum pixels *pixels)
{
	struct video_caps caps = {.type = VIDEO_BUF_TYPE_OUTPUT};
	uint32_t smallest = UINT32_MAX;
	int status = video_get_caps(camera, &caps);

	for (const struct video_format_cap *cap = caps.format_caps;
	     status == 0 && cap->pixelformat != 0; cap++) {
		for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
			const uint32_t area = cap->width_min * cap->height_min;

			if (known[i].format == cap->pixelformat && area < smallest &&
			    cap->width_min >= SIDE && cap->height_min >= SIDE) {
				smallest = area;
				*pixels = known[i].pixels;
				format->type = VIDEO_BUF_TYPE_OUTPUT;
				format->pixelformat = cap->pixelformat;
				format->width = cap->width_min;
				format->height = cap->height_min;
			}
		}
	}
	if (status == 0 && smallest == UINT32_MAX) {
		printf("%s has no pictures in grey, YUYV or RGB565\n", camera->name);
		return -ENOTSUP;
	}
	return status != 0 ? status : video_set_format(camera, format);
}

static int start(const struct device *camera, const struct video_format *format)
{
	struct video_frmival interval = {.numerator = 1, .denominator = RATE};
	int status = video_set_frmival(camera, &interval);

	if (status != 0 && status != -ENOSYS && status != -ENOTSUP) {
		return status;
	}
	for (int i = 0; i < BUFFERS; i++) {
		struct video_buffer *buffer =
			video_buffer_alloc(format->pitch * format->height, K_NO_WAIT);

		if (buffer == NULL) {
			printf("no memory for %d pictures of %u bytes\n", BUFFERS,
			       (unsigned int)(format->pitch * format->height));
			return -ENOMEM;
		}
		buffer->type = VIDEO_BUF_TYPE_OUTPUT;
		status = video_enqueue(camera, buffer);
		if (status != 0) {
			return status;
		}
	}
	return video_stream_start(camera, VIDEO_BUF_TYPE_OUTPUT);
}

/* Pictures between two others that there was no buffer for. */
static uint32_t missing(uint32_t before, uint32_t now)
{
	const uint32_t intervals = ((now - before) * RATE + MSEC_PER_SEC / 2) / MSEC_PER_SEC;

	return intervals > 1 ? intervals - 1 : 0;
}

int main(void)
{
	const struct device *const camera = DEVICE_DT_GET(DT_CHOSEN(zephyr_camera));
	struct video_format format = {0};
	struct video_buffer *buffer;
	struct picture picture;
	uint32_t pictures = 0;
	uint32_t lost = 0;
	uint32_t before = 0;
	bool was_there = false;

	decision.on = TINYML_SCORE(0.8);
	decision.off = TINYML_SCORE(0.5);
	decision.ignored = BIT(NOBODY);

	if (!device_is_ready(camera) || choose_format(camera, &format, &picture.pixels) != 0 ||
	    start(camera, &format) != 0) {
		printf("%s does not start\n", camera->name);
		return 1;
	}
	printf("person: pictures of %ux%u, %d a second\n", (unsigned int)format.width,
	       (unsigned int)format.height, RATE);
	picture.pitch = format.pitch;
	picture.width = (uint16_t)format.width;
	picture.height = (uint16_t)format.height;
	while (video_dequeue(camera, &buffer, SILENCE) == 0) {
		const uint32_t gone = pictures > 0 ? missing(before, buffer->timestamp) : 0;

		before = buffer->timestamp;
		pictures += 1 + gone;
		lost += gone;
		picture.data = buffer->buffer;
		shrink(&picture, person_input(), SIDE);
		(void)video_enqueue(camera, buffer); /* before the run: the camera goes on */
		if (gone > 0) {
			printf("too slow: %u pictures lost\n", gone);
		}
		k_msleep(CONFIG_PERSON_PAUSE_MS);
		if (person_run() != 0) {
			return 1;
		}
		(void)tinyml_decide(&decision, &person_model.outputs[0]);
		if (was_there != (decision.active == PERSON)) {
			was_there = !was_there;
			printf("%u.%u s: %s (%d %%)\n", pictures / RATE,
			       pictures % RATE * 10 / RATE,
			       was_there ? "somebody is there" : "nobody is there",
			       (int)(tinyml_decision_average(&decision, PERSON) * 100 / 32768));
		}
	}
	printf("the camera has stopped: %u pictures, %u lost\n", pictures, lost);
	return 0;
}
