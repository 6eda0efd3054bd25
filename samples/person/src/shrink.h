/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** A picture of the camera as the input of the model. */

#ifndef SAMPLES_PERSON_SHRINK_H_
#define SAMPLES_PERSON_SHRINK_H_

#include <stddef.h>
#include <stdint.h>

enum pixels {
	PIXELS_GREY,   /* one byte */
	PIXELS_YUYV,   /* brightness in every other byte */
	PIXELS_RGB565, /* two bytes, little-endian */
};

struct picture {
	const uint8_t *data;
	size_t pitch; /* bytes of a row */
	uint16_t width;
	uint16_t height;
	enum pixels pixels;
};

/**
 * The square in the middle, shrunk to `side` rows and columns by a whole number, row by row into
 * the input of the model. A picture smaller than that gives nothing.
 */
void shrink(const struct picture *picture, int8_t *input, uint16_t side);

#endif /* SAMPLES_PERSON_SHRINK_H_ */
