/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Dense layers in plain C. */

#include "../weighted/output_s8.h"

static inline const uint32_t *dense_stream_dot_four(const uint32_t *filters, const int8_t *x,
						    int32_t words, int32_t sums[4])
{
	const int8_t *w = (const int8_t *)filters;
	int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];

	for (const int8_t *end = x + 4 * words; x != end; x += 4, w += 16) {
#define STEP(i)                                                                                    \
	do {                                                                                       \
		const int32_t value = x[i];                                                        \
		s0 += w[i] * value;                                                                \
		s1 += w[4 + (i)] * value;                                                          \
		s2 += w[8 + (i)] * value;                                                          \
		s3 += w[12 + (i)] * value;                                                         \
	} while (0)
		STEP(0);
		STEP(1);
		STEP(2);
		STEP(3);
#undef STEP
	}
	sums[0] = s0;
	sums[1] = s1;
	sums[2] = s2;
	sums[3] = s3;
	return filters + 4 * words;
}

static inline const uint32_t *dense_stream_dot_one(const uint32_t *filter, const int8_t *x,
						   int32_t words, int32_t *sum)
{
	const int8_t *w = (const int8_t *)filter;
	int32_t s = *sum;

	for (const int8_t *end = x + 4 * words; x != end; x += 4, w += 4) {
		s += w[0] * x[0];
		s += w[1] * x[1];
		s += w[2] * x[2];
		s += w[3] * x[3];
	}
	*sum = s;
	return filter + words;
}

static inline int8_t dense_stream_rescale(int32_t sum, int32_t factor, int32_t exponent,
					  const struct tinyml_output *to)
{
	return tinyml_output_s8(sum, (int32_t)((uint32_t)factor >> 1), ~exponent, to);
}

#include "dense_stream_s8.h"

void tinyml_dense_s8(const struct tinyml_dense_stream_s8 *p, const int8_t *x, int8_t *y)
{
	dense_stream_multiply(p, x, y);
}
