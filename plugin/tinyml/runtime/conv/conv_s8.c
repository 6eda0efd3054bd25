/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions in plain C: three windows by two filters at a time. */

#include <stdint.h>

#define WINDOWS   3
#define WORD_STEP WINDOWS

static inline void put_word(uint32_t *to, uint32_t word)
{
	*to = word;
}

static inline const uint32_t *dot_pair(const uint32_t *filters, const uint32_t *end,
				       const uint32_t *columns, int32_t sums[2 * WINDOWS])
{
	const int8_t *w = (const int8_t *)filters, *x = (const int8_t *)columns;
	int32_t s00 = sums[0], s01 = sums[1], s02 = sums[2];
	int32_t s10 = sums[3], s11 = sums[4], s12 = sums[5];

	do {
#define STEP(i)                                                                                    \
	do {                                                                                       \
		const int32_t a = w[i], b = w[4 + (i)];                                            \
		int32_t value = x[i];                                                              \
		s00 += value * a;                                                                  \
		s10 += value * b;                                                                  \
		value = x[4 + (i)];                                                                \
		s01 += value * a;                                                                  \
		s11 += value * b;                                                                  \
		value = x[8 + (i)];                                                                \
		s02 += value * a;                                                                  \
		s12 += value * b;                                                                  \
	} while (0)
		STEP(0);
		STEP(1);
		STEP(2);
		STEP(3);
#undef STEP
		w += 8;
		x += 4 * WINDOWS;
	} while (w != (const int8_t *)end);
	sums[0] = s00;
	sums[1] = s01;
	sums[2] = s02;
	sums[3] = s10;
	sums[4] = s11;
	sums[5] = s12;
	return end;
}

static int32_t sum_column(const uint32_t *column, int32_t count)
{
	int32_t sum = 0;

	for (int32_t i = 0; i < count; i++) {
		sum += ((const int8_t *)&column[i / 4 * WORD_STEP])[i % 4];
	}
	return sum;
}

#include "../weighted/output_s8.h"

static inline void rescale_sums(int32_t sums[2 * WINDOWS], const int32_t factor[2],
				const int8_t exponent[2], const struct tinyml_output *to)
{
	for (int32_t i = 0; i < 2; i++) {
		const int32_t multiplier = (int32_t)((uint32_t)factor[i] >> 1),
			      shift = ~exponent[i];
		int32_t *of_filter = &sums[i * WINDOWS];

		of_filter[0] = tinyml_output_s8(of_filter[0], multiplier, shift, to);
		of_filter[1] = tinyml_output_s8(of_filter[1], multiplier, shift, to);
		of_filter[2] = tinyml_output_s8(of_filter[2], multiplier, shift, to);
	}
}

#include "conv_stream_s8.h"

void tinyml_conv_s8(const struct tinyml_conv_stream_s8 *p, const int8_t *x, int8_t *y,
		    void *scratch)
{
	convolve_stream(p, x, y, scratch);
}
