/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The loops of a float convolution, for one type of weights. The file that includes this defines:
 *
 *   CONV_NAME      the function to define
 *   CONV_PARAMS    its parameters: a struct with window, groups, from_the_end and weights
 *   CONV_WEIGHT    the type of weights
 *   CONV_TILE      how many filters lie together at most, their weights taking turns: 8, then 4,
 *                  then what is left of a group filter by filter; or 1
 *
 * and has a function conv_loops_finish(params, sum, output channel) that makes an output element of
 * a sum, and conv_loops_add_tile(x, filters, count, together, sums), which adds products of `count`
 * elements to the sums of so many filters.
 */

#include <tinyml/conv.h>

static inline void conv_loops_add_one(const float *x, const CONV_WEIGHT *filter, int32_t count,
				      float *sum)
{
	for (int32_t i = 0; i < count; i++) {
		*sum += x[i] * filter[i];
	}
}

/* One filter, or a tile of them, at one position; x is the first input channel of the group. Taps
 * that are neighbours in the input, as they are in the filter, are one run of numbers.
 */
static inline __attribute__((always_inline)) void
conv_loops_accumulate(const struct tinyml_window *w, const float *x, const CONV_WEIGHT *filter,
		      struct tinyml_span rows, struct tinyml_span cols, int32_t group_in,
		      int32_t together, float *sums)
{
	const bool one_run = w->dilation_w == 1 && group_in == w->in_c;
	const int32_t taps = one_run ? cols.end - cols.first : 1;

	for (int32_t ky = rows.first; ky < rows.end; ky++) {
		const int32_t iy = rows.start + ky * w->dilation_h;

		for (int32_t kx = cols.first; kx < cols.end; kx += taps) {
			const int32_t ix = cols.start + kx * w->dilation_w;
			const float *in = &x[(iy * w->in_w + ix) * w->in_c];
			const CONV_WEIGHT *k =
				&filter[(ky * w->kernel_w + kx) * group_in * together];

			if (together == 1) {
				conv_loops_add_one(in, k, taps * group_in, sums);
			} else {
				conv_loops_add_tile(in, k, taps * group_in, together, sums);
			}
		}
	}
}

/* The filters of a group at one position. */
static void conv_loops_group(const CONV_PARAMS *p, const float *x, float *y, int32_t number,
			     struct tinyml_span rows, struct tinyml_span cols)
{
	const struct tinyml_window *w = &p->window;
	const int32_t group_in = w->in_c / p->groups, group_out = w->out_c / p->groups;
	const int32_t filter_size = w->kernel_h * w->kernel_w * group_in;
	const int32_t end = (number + 1) * group_out;
	int32_t oc = number * group_out;

	x += number * group_in;
	for (; CONV_TILE > 1 && end - oc >= CONV_TILE; oc += CONV_TILE) {
		float sums[CONV_TILE] = {0.0f};

		conv_loops_accumulate(w, x, &p->weights[oc * filter_size], rows, cols, group_in,
				      CONV_TILE, sums);
		for (int32_t i = 0; i < CONV_TILE; i++) {
			y[oc + i] = conv_loops_finish(p, sums[i], oc + i);
		}
	}
	if (CONV_TILE > 1 && end - oc >= 4) {
		float sums[4] = {0.0f};

		conv_loops_accumulate(w, x, &p->weights[oc * filter_size], rows, cols, group_in, 4,
				      sums);
		for (int32_t i = 0; i < 4; i++, oc++) {
			y[oc] = conv_loops_finish(p, sums[i], oc);
		}
	}
	for (; oc < end; oc++) {
		float sum = 0.0f;

		conv_loops_accumulate(w, x, &p->weights[oc * filter_size], rows, cols, group_in, 1,
				      &sum);
		y[oc] = conv_loops_finish(p, sum, oc);
	}
}

/* All filters at one position of one batch item. */
static void conv_loops_position(const CONV_PARAMS *p, const float *x, float *y, int32_t oy,
				int32_t ox)
{
	const struct tinyml_window *w = &p->window;
	const struct tinyml_span rows =
		tinyml_span(oy, w->stride_h, w->pad_top, w->kernel_h, w->dilation_h, w->in_h);
	const struct tinyml_span cols =
		tinyml_span(ox, w->stride_w, w->pad_left, w->kernel_w, w->dilation_w, w->in_w);

	for (int32_t number = 0; number < p->groups; number++) {
		conv_loops_group(p, x, y, number, rows, cols);
	}
}

void CONV_NAME(const CONV_PARAMS *p, const float *x, float *y)
{
	const struct tinyml_window *w = &p->window;
	const int32_t positions = w->out_h * w->out_w, all = w->batches * positions;

	for (int32_t i = 0; i < all; i++) {
		const int32_t at = p->from_the_end ? all - 1 - i : i;
		const int32_t item = at / positions, o = at - item * positions, oy = o / w->out_w;

		conv_loops_position(p, &x[item * w->in_h * w->in_w * w->in_c], &y[at * w->out_c],
				    oy, o - oy * w->out_w);
	}
}
