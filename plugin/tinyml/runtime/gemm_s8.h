/* SPDX-License-Identifier: Apache-2.0 */

/**
 * The inner loops of convolutions and dense layers in plain C: dot products of int8 rows, several
 * at a time, so that every value loaded is used more than once.
 */

#ifndef TINYML_GEMM_S8_H_
#define TINYML_GEMM_S8_H_

#include <stdint.h>

/** sums[i] += wi · x over count elements. */
static inline void tinyml_dot_4x1(const int8_t *w0, const int8_t *w1, const int8_t *w2,
				  const int8_t *w3, const int8_t *x, int32_t count, int32_t sums[4])
{
	int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
	int32_t k = 0;

#define TINYML_STEP                                                                                \
	do {                                                                                       \
		const int32_t v = *x++;                                                            \
		s0 += *w0++ * v;                                                                   \
		s1 += *w1++ * v;                                                                   \
		s2 += *w2++ * v;                                                                   \
		s3 += *w3++ * v;                                                                   \
	} while (0)

	for (; k + 4 <= count; k += 4) {
		TINYML_STEP;
		TINYML_STEP;
		TINYML_STEP;
		TINYML_STEP;
	}
	for (; k < count; k++) {
		TINYML_STEP;
	}
#undef TINYML_STEP
	sums[0] = s0;
	sums[1] = s1;
	sums[2] = s2;
	sums[3] = s3;
}

/** sums[0..1] += w0 · (c0, c1); sums[2..3] += w1 · the same. */
static inline void tinyml_dot_2x2(const int8_t *w0, const int8_t *w1, const int8_t *c0,
				  const int8_t *c1, int32_t count, int32_t sums[4])
{
	int32_t s00 = sums[0], s01 = sums[1], s10 = sums[2], s11 = sums[3];
	int32_t k = 0;

#define TINYML_STEP                                                                                \
	do {                                                                                       \
		const int32_t a = *w0++, b = *w1++, x0 = *c0++, x1 = *c1++;                        \
		s00 += a * x0;                                                                     \
		s01 += a * x1;                                                                     \
		s10 += b * x0;                                                                     \
		s11 += b * x1;                                                                     \
	} while (0)

	for (; k + 4 <= count; k += 4) {
		TINYML_STEP;
		TINYML_STEP;
		TINYML_STEP;
		TINYML_STEP;
	}
	for (; k < count; k++) {
		TINYML_STEP;
	}
#undef TINYML_STEP
	sums[0] = s00;
	sums[1] = s01;
	sums[2] = s10;
	sums[3] = s11;
}

#endif /* TINYML_GEMM_S8_H_ */
