/* SPDX-License-Identifier: Apache-2.0 */

/**
 * The inner loop of convolutions and dense layers: dot products of int8 rows.
 *
 * Two filters meet two columns at a time, so that every value loaded is used twice. Cores with DSP
 * instructions multiply pairs: there, columns are widened to int16 once and reused by all filters.
 */

#ifndef TINYML_GEMM_S8_H_
#define TINYML_GEMM_S8_H_

#include <stdint.h>
#include <string.h>

#if defined(__ARM_FEATURE_SIMD32) && __ARM_FEATURE_SIMD32
#include <arm_acle.h>
#define TINYML_PAIRS 1
#else
#define TINYML_PAIRS 0
#endif

#if TINYML_PAIRS

static inline uint32_t tinyml_load_word(const void *p)
{
	uint32_t word;

	memcpy(&word, p, sizeof(word)); /* one load; the address need not be aligned */
	return word;
}

/* Bytes 0 and 2 of a word, sign-extended into its two halves. */
static inline int16x2_t tinyml_even_bytes(uint32_t word)
{
	return __sxtb16((int8x4_t)word);
}

/* Bytes 1 and 3: the compiler does not merge the rotation by itself. */
static inline int16x2_t tinyml_odd_bytes(uint32_t word)
{
	int16x2_t halves;

	__asm__("sxtb16 %0, %1, ror #8" : "=r"(halves) : "r"(word));
	return halves;
}

/** Widen one column of a pair, 0 or 1. The two are interleaved: even, even, odd, odd bytes of four
 * elements each; what is missing to four elements is zero.
 */
static inline void tinyml_widen(const int8_t *bytes, int32_t count, int16x2_t *pair, int32_t which)
{
	for (pair += which; count >= 4; count -= 4, bytes += 4, pair += 4) {
		const uint32_t word = tinyml_load_word(bytes);

		pair[0] = tinyml_even_bytes(word);
		pair[2] = tinyml_odd_bytes(word);
	}
	if (count > 0) {
		const uint32_t b0 = (uint8_t)bytes[0];
		const uint32_t b1 = count > 1 ? (uint8_t)bytes[1] : 0u;
		const uint32_t b2 = count > 2 ? (uint8_t)bytes[2] : 0u;
		const uint32_t word = b0 | b1 << 8 | b2 << 16;

		pair[0] = tinyml_even_bytes(word);
		pair[2] = tinyml_odd_bytes(word);
	}
}

/** sums[0..1] += w0 · (column 0, column 1); sums[2..3] += w1 · the same, over count elements.
 *
 * Reads filters in whole words: a table has up to three bytes of padding behind it.
 */
static inline void tinyml_dot_2x2(const int8_t *w0, const int8_t *w1, const int16x2_t *pair,
				  int32_t count, int32_t sums[4])
{
	int32_t s00 = sums[0], s01 = sums[1], s10 = sums[2], s11 = sums[3];

	for (; count > 0; count -= 4, w0 += 4, w1 += 4, pair += 4) {
		const uint32_t a = tinyml_load_word(w0);
		const uint32_t b = tinyml_load_word(w1);
		const int16x2_t even0 = pair[0], even1 = pair[1], odd0 = pair[2], odd1 = pair[3];
		const int16x2_t a_even = tinyml_even_bytes(a), a_odd = tinyml_odd_bytes(a);
		const int16x2_t b_even = tinyml_even_bytes(b), b_odd = tinyml_odd_bytes(b);

		s00 = __smlad(a_even, even0, s00);
		s01 = __smlad(a_even, even1, s01);
		s10 = __smlad(b_even, even0, s10);
		s11 = __smlad(b_even, even1, s11);
		s00 = __smlad(a_odd, odd0, s00);
		s01 = __smlad(a_odd, odd1, s01);
		s10 = __smlad(b_odd, odd0, s10);
		s11 = __smlad(b_odd, odd1, s11);
	}
	sums[0] = s00;
	sums[1] = s01;
	sums[2] = s10;
	sums[3] = s11;
}

/** sums[i] += wi · x: four filters meet one column of plain bytes, a word at a time. */
static inline void tinyml_dot_4x1(const int8_t *w0, const int8_t *w1, const int8_t *w2,
				  const int8_t *w3, const int8_t *x, int32_t count, int32_t sums[4])
{
	int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
	int32_t k = 0;

#define TINYML_WORD(w, s)                                                                          \
	do {                                                                                       \
		const uint32_t word = tinyml_load_word(&(w)[k]);                                   \
		s = __smlad(tinyml_even_bytes(word), even, s);                                     \
		s = __smlad(tinyml_odd_bytes(word), odd, s);                                       \
	} while (0)

	for (; k + 4 <= count; k += 4) {
		const uint32_t bytes = tinyml_load_word(&x[k]);
		const int16x2_t even = tinyml_even_bytes(bytes);
		const int16x2_t odd = tinyml_odd_bytes(bytes);

		TINYML_WORD(w0, s0);
		TINYML_WORD(w1, s1);
		TINYML_WORD(w2, s2);
		TINYML_WORD(w3, s3);
	}
#undef TINYML_WORD
	for (; k < count; k++) {
		s0 += w0[k] * x[k];
		s1 += w1[k] * x[k];
		s2 += w2[k] * x[k];
		s3 += w3[k] * x[k];
	}
	sums[0] = s0;
	sums[1] = s1;
	sums[2] = s2;
	sums[3] = s3;
}

#else

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

#endif

#endif /* TINYML_GEMM_S8_H_ */
