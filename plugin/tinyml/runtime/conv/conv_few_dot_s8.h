/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Four windows times a filter in plain C, for conv_few_s8.h. */

#ifndef TINYML_CONV_FEW_DOT_S8_H_
#define TINYML_CONV_FEW_DOT_S8_H_

#include <stdint.h>

#include "conv_few_windows.h"

#if defined(__thumb__) && !defined(__thumb2__)
#define TOGETHER 2 /* windows, for which eight registers are enough */
#else
#define TOGETHER WINDOWS
#endif

static void conv_few_dot(const struct conv_few_windows *x, const int8_t *weights, int32_t rows,
			 int32_t row, int32_t sums[WINDOWS])
{
	for (int32_t n = 0; n < WINDOWS; n += TOGETHER) {
		const int8_t *line = &x->first[n * x->step], *from = weights;
		int32_t s0 = sums[n], s1 = sums[n + 1];
#if TOGETHER > 2
		int32_t s2 = sums[n + 2], s3 = sums[n + 3];
#endif

		for (int32_t i = rows; i > 0; i--, line += x->line) {
			const int8_t *const end = from + row;
			const int8_t *a = line, *b = a + x->step;
#if TOGETHER > 2
			const int8_t *c = b + x->step, *d = c + x->step;
#endif

			do {
				const int32_t weight = *from++;

				s0 += weight * *a++;
				s1 += weight * *b++;
#if TOGETHER > 2
				s2 += weight * *c++;
				s3 += weight * *d++;
#endif
			} while (from != end);
		}
		sums[n] = s0;
		sums[n + 1] = s1;
#if TOGETHER > 2
		sums[n + 2] = s2;
		sums[n + 3] = s3;
#endif
	}
}

#endif /* TINYML_CONV_FEW_DOT_S8_H_ */
