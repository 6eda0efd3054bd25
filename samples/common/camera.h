/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Pictures of a camera under Zephyr's video API, one after the other. */

#ifndef SAMPLES_COMMON_CAMERA_H_
#define SAMPLES_COMMON_CAMERA_H_

#include <stdint.h>

#include <zephyr/device.h>

#include "shrink.h"

struct video_buffer;

struct camera {
	const struct device *device;
	uint16_t least_width; /* of a picture that the application can use */
	uint16_t least_height;
	uint8_t rate; /* pictures a second */

	uint32_t pictures; /* so far, with those that were lost */
	uint32_t lost;     /* because no buffer was free */
	uint32_t before;   /* when the last one was taken, in milliseconds */
	struct video_buffer *buffer;
};

/** Start with the smallest pictures that can be used. Says on the console what is wrong. */
int camera_start(struct camera *camera, struct picture *picture);

/** Wait for the next picture; an error if there is none for two seconds. */
int camera_take(struct camera *camera, struct picture *picture);

/** The buffer of the picture goes back, and the camera goes on. */
void camera_give_back(struct camera *camera);

#endif /* SAMPLES_COMMON_CAMERA_H_ */
