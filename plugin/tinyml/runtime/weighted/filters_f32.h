/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TINYML_FILTERS_F32_H_
#define TINYML_FILTERS_F32_H_

#include <stdbool.h>
#include <stdint.h>

#include "weight_f32.h"

/** Filters, and the part of a window that they are multiplied by: `rows` runs of `count` elements.
 * Weights are by eight filters, which take turns, then by four, then the rest one by one.
 */
struct tinyml_filters_f32 {
	int32_t filters;
	int32_t filter_size;      /* elements of a filter */
	int32_t first;            /* the element of a filter that a window begins with */
	int32_t rows;             /* 0 if all of the window is outside the input */
	int32_t count;            /* at least 1 */
	int32_t x_skip;           /* elements of the window between two runs */
	int32_t w_skip;           /* elements of a filter between two runs */
	int32_t x_other, y_other; /* elements from a window to the one that is computed with it */
	int32_t x_next, y_next;   /* elements from a window, or from two, to what comes next */
	bool go_on;               /* sums begin with what the outputs are, not with 0 */
	const tinyml_weight_f32 *weights; /* of the first filter; halves from a multiple of 4 on */
	const float *bias;                /* of the first filter; NULL: nothing is added */
};

/** So many times one window or, if `two`, a window and its other one.
 *
 * Every sum has the same order of additions on every core: elements from the first to the last,
 * then the bias. What differs is the rounding of products, see fused_f32.h.
 */
#if TINYML_HALF_WEIGHTS
#define TINYML_FILTERS tinyml_filters_f32_f16
#else
#define TINYML_FILTERS tinyml_filters_f32
#endif
void TINYML_FILTERS(const struct tinyml_filters_f32 *f, const float *x, float *y, int32_t times,
		    bool two);

/** min <= y <= max for all elements; what is not a number stays. */
void tinyml_limit_f32(float *y, int32_t count, float min, float max);

#endif /* TINYML_FILTERS_F32_H_ */
