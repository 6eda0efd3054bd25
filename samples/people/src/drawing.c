/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "drawing.h"

#include <stdio.h>

static const char greys[] = "#*=:. "; /* from dark to bright */

#define GREYS ((int)sizeof(greys) - 1)

void drawing_begin(struct drawing *drawing, const int8_t *pixels)
{
	for (int line = 0; line < LINES; line++) {
		for (int x = 0; x < COLUMNS; x++) {
			const int8_t *upper = &pixels[2 * line * COLUMNS + x];
			const int sum = upper[0] + upper[COLUMNS] + 256; /* 0 to 510 */

			drawing->lines[line][x] = greys[sum * GREYS / 511];
		}
		drawing->lines[line][COLUMNS] = '\0';
	}
}

static int between(int low, int value, int high)
{
	return value < low ? low : value > high ? high : value;
}

void drawing_add(struct drawing *drawing, const struct box *box)
{
	const int left = between(0, box->left, COLUMNS - 1);
	const int right = between(0, box->right, COLUMNS - 1);
	const int top = between(0, box->top / 2, LINES - 1);
	const int bottom = between(0, box->bottom / 2, LINES - 1);

	for (int x = left; x <= right; x++) {
		drawing->lines[top][x] = '-';
		drawing->lines[bottom][x] = '-';
	}
	for (int line = top; line <= bottom; line++) {
		const char edge = line == top || line == bottom ? '+' : '|';

		drawing->lines[line][left] = edge;
		drawing->lines[line][right] = edge;
	}
}

void drawing_print(const struct drawing *drawing)
{
	for (int line = 0; line < LINES; line++) {
		printf("  |%s|\n", drawing->lines[line]);
	}
}
