/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Classifies three handwritten digits. The build compiles models/digits.onnx to digits.h and
 * digits.c. */

#include <stdio.h>
#include <string.h>

#include <digits.h>

#define SIDE    8
#define CLASSES 10
#define COUNT   3

/* What this code expects of the model: one that differs fails the build. */
_Static_assert(DIGITS_INPUT_TYPE == TINYML_FLOAT32 && DIGITS_INPUT_ELEMENTS == SIDE * SIDE,
	       "the model takes something else than an image of 8x8 floats");
_Static_assert(DIGITS_OUTPUT_TYPE == TINYML_FLOAT32 && DIGITS_OUTPUT_ELEMENTS == CLASSES,
	       "the model gives something else than a float for each of ten digits");

/* From paper to ink in 17 steps. */
static const char levels[] = " .,:;-~+=*oaxX#%@";

static const char *const drawings[COUNT][SIDE] = {
	{
		"  -X*.  ",
		"  X%o%- ",
		" :%, a= ",
		" ;x  == ",
		" -=  *= ",
		" ;a .x+ ",
		" ,#-ox  ",
		"  ~Xo   ",
	},
	{
		"  *@X~  ",
		"  ~-@@  ",
		"   =%-  ",
		"   -#:  ",
		"    *%, ",
		"     ax ",
		"  ;=a%x ",
		"  a#x=  ",
	},
	{
		"   ,X   ",
		"   =%   ",
		"  -@-,  ",
		"  %x.@; ",
		" ;@,*@= ",
		"  o#@@; ",
		"    X=  ",
		"    X~  ",
	},
};

static int read_digit(const char *const *rows)
{
	float *input = digits_input();

	for (int y = 0; y < SIDE; y++) {
		for (int x = 0; x < SIDE; x++) {
			*input++ = (float)(strchr(levels, rows[y][x]) - levels) / 16.0f;
		}
	}
	if (digits_run() != 0) {
		return -1;
	}

	const float *logits = digits_output();
	int best = 0;

	for (int i = 1; i < CLASSES; i++) {
		if (logits[i] > logits[best]) {
			best = i;
		}
	}
	return best;
}

int main(void)
{
	for (int i = 0; i < COUNT; i++) {
		for (int y = 0; y < SIDE; y++) {
			printf("    %s\n", drawings[i][y]);
		}
		printf("this is a %d\n", read_digit(drawings[i]));
	}
	return 0;
}
