/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>

#include <zephyr/drivers/video.h>
#include <zephyr/kernel.h>

#include "camera.h"

#define SILENCE K_SECONDS(2) /* without a picture: the camera has stopped */
#define BUFFERS CONFIG_VIDEO_BUFFER_POOL_NUM_MAX

static const struct {
	uint32_t format;
	enum pixels pixels;
} known[] = {
	{VIDEO_PIX_FMT_GREY, PIXELS_GREY},
	{VIDEO_PIX_FMT_YUYV, PIXELS_YUYV},
	{VIDEO_PIX_FMT_RGB565, PIXELS_RGB565},
};

/* The smallest pictures of the camera that the model can use. */
static int choose_format(const struct camera *camera, struct video_format *format,
			 enum pixels *pixels)
{
	struct video_caps caps = {.type = VIDEO_BUF_TYPE_OUTPUT};
	uint32_t smallest = UINT32_MAX;
	int status = video_get_caps(camera->device, &caps);

	for (const struct video_format_cap *cap = caps.format_caps;
	     status == 0 && cap->pixelformat != 0; cap++) {
		for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
			const uint32_t area = cap->width_min * cap->height_min;

			if (known[i].format == cap->pixelformat && area < smallest &&
			    cap->width_min >= camera->least_width &&
			    cap->height_min >= camera->least_height) {
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
		printf("%s has no pictures in grey, YUYV or RGB565\n", camera->device->name);
		return -ENOTSUP;
	}
	return status != 0 ? status : video_set_format(camera->device, format);
}

static int start(const struct camera *camera, const struct video_format *format)
{
	struct video_frmival interval = {.numerator = 1, .denominator = camera->rate};
	int status = video_set_frmival(camera->device, &interval);

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
		status = video_enqueue(camera->device, buffer);
		if (status != 0) {
			return status;
		}
	}
	return video_stream_start(camera->device, VIDEO_BUF_TYPE_OUTPUT);
}

int camera_start(struct camera *camera, struct picture *picture)
{
	struct video_format format = {0};
	int status = device_is_ready(camera->device) ? 0 : -ENODEV;

	status = status != 0 ? status : choose_format(camera, &format, &picture->pixels);
	status = status != 0 ? status : start(camera, &format);
	if (status != 0) {
		printf("%s does not start\n", camera->device->name);
		return status;
	}
	picture->pitch = format.pitch;
	picture->width = (uint16_t)format.width;
	picture->height = (uint16_t)format.height;
	return 0;
}

/* Pictures between two others that there was no buffer for. */
static uint32_t missing(const struct camera *camera, uint32_t now)
{
	const uint32_t passed = (now - camera->before) * camera->rate;
	const uint32_t intervals = (passed + MSEC_PER_SEC / 2) / MSEC_PER_SEC;

	return camera->pictures > 0 && intervals > 1 ? intervals - 1 : 0;
}

int camera_take(struct camera *camera, struct picture *picture)
{
	uint32_t gone;
	const int status = video_dequeue(camera->device, &camera->buffer, SILENCE);

	if (status != 0) {
		return status;
	}
	gone = missing(camera, camera->buffer->timestamp);
	camera->before = camera->buffer->timestamp;
	camera->pictures += 1 + gone;
	camera->lost += gone;
	picture->data = camera->buffer->buffer;
	if (gone > 0) {
		printf("too slow: %u pictures lost\n", gone);
	}
	return 0;
}

void camera_give_back(struct camera *camera)
{
	(void)video_enqueue(camera->device, camera->buffer);
}
