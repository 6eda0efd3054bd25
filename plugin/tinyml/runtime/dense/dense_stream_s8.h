/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Dense layers over a stream of filters (struct tinyml_dense_stream_s8): a row of the input is
 * multiplied by four filters at a time, and by the last ones one by one.
 *
 * The file that includes this defines
 *
 *   dense_stream_dot_four()   sums[i] += filter i * x over some words, for four interleaved filters
 *   dense_stream_dot_one()    the same for one filter; both return the address after the weights
 *   dense_stream_rescale()    turns a sum into an output
 *
 * and, if the first three of four filters are stored with an offset, WEIGHT_OFFSET.
 */

#ifndef TINYML_DENSE_STREAM_S8_H_
#define TINYML_DENSE_STREAM_S8_H_

#include <tinyml/dense.h>
#include <tinyml/tinyml.h>

#include "../weighted/output_s8.h"

#ifndef WEIGHT_OFFSET
#define WEIGHT_OFFSET 0
#endif

static int32_t dense_stream_sum_elements(const int8_t *x, int32_t count)
{
	int32_t sum = 0;

	for (int32_t i = 0; i < count; i++) {
		sum += x[i];
	}
	return sum;
}

static inline void dense_stream_multiply(const struct tinyml_dense_stream_s8 *p, const int8_t *x,
					 int8_t *y)
{
	const struct tinyml_output to =
		tinyml_output(p->round_once, p->out_zero, p->out_min, p->out_max);
	const int32_t inputs = p->inputs, outputs = p->outputs, weight_zero = p->weight_zero;
	const int32_t whole = inputs / 4, rest = inputs % 4;

	TINYML_ASSERT(TINYML_ALIGNED(p->filters, 4) && p->out_min <= p->out_max);
	for (int32_t row = p->rows; row > 0; row--, x += inputs) {
		const int32_t all = WEIGHT_OFFSET != 0 || weight_zero != 0
					    ? dense_stream_sum_elements(x, inputs)
					    : 0;
		const int32_t shared = weight_zero * all, of_three = shared + WEIGHT_OFFSET * all;
		const uint32_t *w = (const uint32_t *)p->filters;
		uint32_t last_word = 0; /* assembled here, so that no byte past the end is read */
		const int8_t *last = (const int8_t *)&last_word;

		for (int32_t i = inputs; i > 4 * whole; i--) {
			last_word = last_word << 8 | (uint8_t)x[i - 1];
		}
		for (int32_t left = outputs / 4; left > 0; left--, y += 4) {
			const int32_t *bias = (const int32_t *)w;
			int32_t sums[4] = {bias[0] - of_three, bias[1] - of_three,
					   bias[2] - of_three, bias[3] - shared};
			const int8_t *exponent;

			w = whole > 0 ? dense_stream_dot_four(w + 4, x, whole, sums) : w + 4;
			w = rest > 0 ? dense_stream_dot_four(w, last, 1, sums) : w;
			exponent = (const int8_t *)&w[4];
			y[0] = dense_stream_rescale(sums[0], (int32_t)w[0], exponent[0], &to);
			y[1] = dense_stream_rescale(sums[1], (int32_t)w[1], exponent[1], &to);
			y[2] = dense_stream_rescale(sums[2], (int32_t)w[2], exponent[2], &to);
			y[3] = dense_stream_rescale(sums[3], (int32_t)w[3], exponent[3], &to);
			w += 5;
		}
		for (int32_t left = outputs % 4; left > 0; left--) {
			int32_t sum = (int32_t)w[0] - shared;

			w = dense_stream_dot_one(w + 1, x, whole, &sum);
			w = dense_stream_dot_one(w, last, rest > 0, &sum);
			*y++ = dense_stream_rescale(sum, (int32_t)w[0], *(const int8_t *)&w[1],
						    &to);
			w += 2;
		}
	}
}

#endif /* TINYML_DENSE_STREAM_S8_H_ */
