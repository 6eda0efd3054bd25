/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Dense layers: a row of the input meets four filters at a time, the last ones
 * one by one. The filters are a stream of words, with what their sums need: see
 * ops/_stream.py.
 *
 * The file that includes this says how to multiply and how to make outputs of
 * sums:
 *
 *   dot_four()  sums[i] += filter i · x over some words; the filters take
 * turns, a word each dot_one()   the same for one filter; both return what
 * follows the filters finish()    makes an output of a sum
 */

#ifndef TINYML_DENSE_STREAM_S8_H_
#define TINYML_DENSE_STREAM_S8_H_

#include <string.h>

#include <tinyml/dense.h>

#include "output_s8.h"

static int32_t sum_of(const int8_t *x, int32_t count)
{
	int32_t sum = 0;

	for (int32_t i = 0; i < count; i++) {
		sum += x[i];
	}
	return sum;
}

static inline void multiply(const struct tinyml_dense_s8 *p, const int8_t *x, int8_t *y)
{
	const struct tinyml_output to =
		tinyml_output(p->round_once, p->out_zero, p->out_min, p->out_max);
	const int32_t inputs = p->inputs, outputs = p->outputs, weight_zero = p->weight_zero;
	const int32_t whole = inputs / 4, rest = inputs % 4;

	for (int32_t row = p->rows; row > 0; row--, x += inputs) {
		const int32_t shared = weight_zero != 0 ? weight_zero * sum_of(x, inputs) : 0;
		const uint32_t *w = (const uint32_t *)(const void *)p->weights;
		int8_t last[4] = {0};

		for (int32_t i = 0; i < rest; i++) { /* no byte past the end is read */
			last[i] = x[4 * whole + i];
		}
		for (int32_t left = outputs; left > 0;) {
			const int32_t count = left >= 4 ? 4 : 1;
			int32_t sums[4] = {0};

			for (int32_t i = 0; i < count; i++) {
				sums[i] = (int32_t)*w++ - shared;
			}
			if (count == 4) {
				w = whole > 0 ? dot_four(w, x, whole, sums) : w;
				w = rest > 0 ? dot_four(w, last, 1, sums) : w;
			} else {
				w = dot_one(w, x, whole, sums);
				w = dot_one(w, last, rest > 0, sums);
			}
			for (int32_t i = 0; i < count; i++) {
				*y++ = finish(sums[i], (int32_t)w[i],
					      ((const int8_t *)&w[count])[i], &to);
			}
			w += count + 1;
			left -= count;
		}
	}
}

#endif /* TINYML_DENSE_STREAM_S8_H_ */
