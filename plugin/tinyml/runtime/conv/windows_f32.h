/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TINYML_WINDOWS_F32_H_
#define TINYML_WINDOWS_F32_H_

#include <tinyml/conv.h>

/** The windows of a float convolution, and those of them that are to be computed next. */
struct tinyml_windows_f32 {
	struct tinyml_window window;
	bool from_the_end;  /* compute the last position first */
	const void *params; /* of the kernel */
	int32_t y_step;     /* elements from an output to its neighbour in a row; 0: out_c */
	int32_t y_line;     /* elements from a row of outputs to the next; unless y_step is 0 */

	/** Computes windows of the same form: so many times one window or, if `two`, a window and
	 * its other one. x is where the first one begins, y is its output.
	 */
	void (*compute)(const struct tinyml_windows_f32 *v, const float *x, float *y, int32_t times,
			bool two);

	int32_t line, tap;        /* elements of the input between rows and columns of a window */
	int32_t rows, taps;       /* of a window that are inside the input; both are 0 or none is */
	int32_t first;            /* the tap of the kernel that a window begins with */
	int32_t x_other, y_other; /* elements from a window to the one that is computed with it */
	int32_t x_next, y_next;   /* elements from a window, or from two, to what comes next */
};

/** Goes through all windows. The members up to `compute` are known. */
void tinyml_windows_f32(struct tinyml_windows_f32 *v, const float *x, float *y);

#endif /* TINYML_WINDOWS_F32_H_ */
