/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "shrink.h"

/* The brightness of a pixel, from 0 to 255. */
static uint32_t brightness(const struct picture *picture, const uint8_t *row, size_t column)
{
	uint32_t rgb;

	switch (picture->pixels) {
	case PIXELS_GREY:
		return row[column];
	case PIXELS_YUYV:
		return row[2 * column];
	default:
		rgb = row[2 * column] | (uint32_t)row[2 * column + 1] << 8;
		/* Red, green and blue weigh 0.299, 0.587 and 0.114. */
		return (77u * ((rgb >> 11) * 255u / 31u) + 150u * ((rgb >> 5 & 63u) * 255u / 63u) +
			29u * ((rgb & 31u) * 255u / 31u)) >>
		       8;
	}
}

void shrink(const struct picture *picture, int8_t *input, uint16_t columns, uint16_t rows)
{
	const size_t across = picture->width / columns;
	const size_t down = picture->height / rows;
	const size_t factor = across < down ? across : down;
	const size_t left = (picture->width - factor * columns) / 2;
	const size_t top = (picture->height - factor * rows) / 2;

	if (factor == 0) {
		return;
	}
	for (size_t y = 0; y < rows; y++) {
		for (size_t x = 0; x < columns; x++) {
			uint32_t sum = 0;

			for (size_t i = 0; i < factor * factor; i++) {
				const size_t line = top + y * factor + i / factor;

				sum += brightness(picture, picture->data + line * picture->pitch,
						  left + x * factor + i % factor);
			}
			*input++ = (int8_t)((int)(sum / (factor * factor)) - 128);
		}
	}
}
