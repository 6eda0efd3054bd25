/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** A picture with boxes, as text. */

#ifndef SAMPLES_PEOPLE_DRAWING_H_
#define SAMPLES_PEOPLE_DRAWING_H_

#include <stdint.h>

#define COLUMNS 40 /* of the picture; a character is one pixel wide and two high */
#define ROWS    32
#define LINES   (ROWS / 2)

struct drawing {
	char lines[LINES][COLUMNS + 1];
};

/** Corners in pixels of the picture, which may be outside it. */
struct box {
	int left;
	int top;
	int right;
	int bottom;
};

/** The picture in characters, dark ones for dark pixels. */
void drawing_begin(struct drawing *drawing, const int8_t *pixels);

/** The outline of a box. */
void drawing_add(struct drawing *drawing, const struct box *box);

void drawing_print(const struct drawing *drawing);

#endif /* SAMPLES_PEOPLE_DRAWING_H_ */
