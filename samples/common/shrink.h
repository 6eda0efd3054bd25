/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** A picture of the camera as the input of a model. */

#ifndef SAMPLES_COMMON_SHRINK_H_
#define SAMPLES_COMMON_SHRINK_H_

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
 * The middle of a picture, shrunk to `columns` and `rows` by a whole number, as large as possible,
 * row by row into the input of the model. A picture smaller than that gives nothing.
 */
void shrink(const struct picture *picture, int8_t *input, uint16_t columns, uint16_t rows);

#endif /* SAMPLES_COMMON_SHRINK_H_ */
