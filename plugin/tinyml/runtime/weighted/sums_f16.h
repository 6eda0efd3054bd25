/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TINYML_SUMS_F16_H_
#define TINYML_SUMS_F16_H_

#include <stdbool.h>
#include <stdint.h>

/** Products that are added up in float16 before their sum is added to a float. */
#define TINYML_SUMS_F16_BLOCK 32

/** Runs of floats that become half-precision numbers. */
struct tinyml_runs_f16 {
	int32_t rows;
	int32_t count;  /* elements of a run */
	int32_t x_step; /* elements from a run to the next */
	int32_t y_step; /* the same where they are written */
};

void tinyml_runs_f16(const struct tinyml_runs_f16 *r, const float *x, uint16_t *y);

/** Filters by sixteen, then by eight, then the rest. Those that are computed together take turns,
 * one element each: of every eight the first, the fifth, the second, the sixth and so on, fewer
 * than eight in their order.
 */
struct tinyml_sums_f16 {
	int32_t filters;
	int32_t count;           /* elements of a filter */
	const uint16_t *weights; /* from which sixteen bytes can be read after the last, too */
	const float *bias;       /* one per filter, or NULL */
};

/** Dot products of all filters with a window or, if `x1` is not NULL, with two: half-precision
 * numbers from a multiple of four bytes on.
 *
 * The order is that of the elements, on every core. Products are not rounded, their sums are, to
 * float16, one after the other, beginning with 0 in every block. The bias comes first; the sums of
 * blocks are added to it as floats.
 */
void tinyml_sums_f16(const struct tinyml_sums_f16 *s, const uint16_t *x0, const uint16_t *x1,
		     float *y0, float *y1);

/** Dot products of all filters with rows that follow each other. Two are read before their outputs
 * are written. `halves`: room for one row, or for two of which the second begins at a multiple of
 * four bytes.
 */
void tinyml_rows_f16(const struct tinyml_sums_f16 *s, const float *x, float *y, int32_t rows,
		     bool from_the_end, uint16_t *halves);

#endif /* TINYML_SUMS_F16_H_ */
