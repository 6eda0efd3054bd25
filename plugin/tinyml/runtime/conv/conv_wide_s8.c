/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions in plain C for processors with 32 registers: four windows by four filters at a time,
 * whose sixteen sums stay in registers. */

#include <stdint.h>

#include "../weighted/output_s8.h"

#define WINDOWS   4
#define WORD_STEP WINDOWS

static inline void conv_columns_put_word(uint32_t *to, uint32_t word)
{
	*to = word;
}

#include "conv_columns_s8.h"

#define SUMS (2 * WINDOWS) /* of a pair of filters: first those of the first one */

/* Compilers that load the operands of the next step early run out of registers. */
#if defined(__GNUC__)
#define IN_ORDER() __asm__ volatile("" ::: "memory")
#else
#define IN_ORDER()
#endif

/* Two pairs of filters. */
__attribute__((noinline)) static void conv_wide_dot_pairs(const uint32_t *first,
							  const uint32_t *second, int32_t words,
							  const int8_t *x, int32_t sums[2 * SUMS])
{
	const int8_t *w = (const int8_t *)(first + 2), *v = (const int8_t *)(second + 2);
	const int8_t *end = w + 4 * words;
	int32_t s00 = (int32_t)first[0], s01 = s00, s02 = s00, s03 = s00;
	int32_t s10 = (int32_t)first[1], s11 = s10, s12 = s10, s13 = s10;
	int32_t s20 = (int32_t)second[0], s21 = s20, s22 = s20, s23 = s20;
	int32_t s30 = (int32_t)second[1], s31 = s30, s32 = s30, s33 = s30;

	do {
#define STEP(i)                                                                                    \
	do {                                                                                       \
		const int32_t a = w[i], b = w[4 + (i)], c = v[i], d = v[4 + (i)];                  \
		int32_t value = x[i];                                                              \
		s00 += value * a;                                                                  \
		s10 += value * b;                                                                  \
		s20 += value * c;                                                                  \
		s30 += value * d;                                                                  \
		IN_ORDER();                                                                        \
		value = x[4 + (i)];                                                                \
		s01 += value * a;                                                                  \
		s11 += value * b;                                                                  \
		s21 += value * c;                                                                  \
		s31 += value * d;                                                                  \
		IN_ORDER();                                                                        \
		value = x[8 + (i)];                                                                \
		s02 += value * a;                                                                  \
		s12 += value * b;                                                                  \
		s22 += value * c;                                                                  \
		s32 += value * d;                                                                  \
		IN_ORDER();                                                                        \
		value = x[12 + (i)];                                                               \
		s03 += value * a;                                                                  \
		s13 += value * b;                                                                  \
		s23 += value * c;                                                                  \
		s33 += value * d;                                                                  \
		IN_ORDER();                                                                        \
	} while (0)
		STEP(0);
		STEP(1);
		STEP(2);
		STEP(3);
#undef STEP
		w += 8;
		v += 8;
		x += 4 * WINDOWS;
	} while (w != end);
	sums[0] = s00, sums[1] = s01, sums[2] = s02, sums[3] = s03;
	sums[4] = s10, sums[5] = s11, sums[6] = s12, sums[7] = s13;
	sums[8] = s20, sums[9] = s21, sums[10] = s22, sums[11] = s23;
	sums[12] = s30, sums[13] = s31, sums[14] = s32, sums[15] = s33;
}

/* The same for the first two windows: the last positions may be no more than these. */
__attribute__((noinline)) static void conv_wide_dot_pairs_twice(const uint32_t *first,
								const uint32_t *second,
								int32_t words, const int8_t *x,
								int32_t sums[2 * SUMS])
{
	const int8_t *w = (const int8_t *)(first + 2), *v = (const int8_t *)(second + 2);
	const int8_t *end = w + 4 * words;
	int32_t s00 = (int32_t)first[0], s01 = s00, s10 = (int32_t)first[1], s11 = s10;
	int32_t s20 = (int32_t)second[0], s21 = s20, s30 = (int32_t)second[1], s31 = s30;

	do {
#define STEP(i)                                                                                    \
	do {                                                                                       \
		const int32_t a = w[i], b = w[4 + (i)], c = v[i], d = v[4 + (i)];                  \
		const int32_t value = x[i], next = x[4 + (i)];                                     \
		s00 += value * a;                                                                  \
		s10 += value * b;                                                                  \
		s20 += value * c;                                                                  \
		s30 += value * d;                                                                  \
		IN_ORDER();                                                                        \
		s01 += next * a;                                                                   \
		s11 += next * b;                                                                   \
		s21 += next * c;                                                                   \
		s31 += next * d;                                                                   \
		IN_ORDER();                                                                        \
	} while (0)
		STEP(0);
		STEP(1);
		STEP(2);
		STEP(3);
#undef STEP
		w += 8;
		v += 8;
		x += 4 * WINDOWS;
	} while (w != end);
	sums[0] = s00, sums[1] = s01, sums[4] = s10, sums[5] = s11;
	sums[8] = s20, sums[9] = s21, sums[12] = s30, sums[13] = s31;
}

__attribute__((noinline)) static void conv_wide_dot_pair(const uint32_t *pair, int32_t words,
							 const int8_t *x, int32_t sums[SUMS])
{
	const int8_t *w = (const int8_t *)(pair + 2), *end = w + 4 * words;
	int32_t s00 = (int32_t)pair[0], s01 = s00, s02 = s00, s03 = s00;
	int32_t s10 = (int32_t)pair[1], s11 = s10, s12 = s10, s13 = s10;

	do {
#define STEP(i)                                                                                    \
	do {                                                                                       \
		const int32_t a = w[i], b = w[4 + (i)];                                            \
		s00 += x[i] * a;                                                                   \
		s10 += x[i] * b;                                                                   \
		s01 += x[4 + (i)] * a;                                                             \
		s11 += x[4 + (i)] * b;                                                             \
		IN_ORDER();                                                                        \
		s02 += x[8 + (i)] * a;                                                             \
		s12 += x[8 + (i)] * b;                                                             \
		s03 += x[12 + (i)] * a;                                                            \
		s13 += x[12 + (i)] * b;                                                            \
		IN_ORDER();                                                                        \
	} while (0)
		STEP(0);
		STEP(1);
		STEP(2);
		STEP(3);
#undef STEP
		w += 8;
		x += 4 * WINDOWS;
	} while (w != end);
	sums[0] = s00, sums[1] = s01, sums[2] = s02, sums[3] = s03;
	sums[4] = s10, sums[5] = s11, sums[6] = s12, sums[7] = s13;
}

static int32_t conv_wide_sum_column(const uint32_t *column, int32_t count)
{
	int32_t sum = 0;

	for (int32_t i = 0; i < count; i++) {
		sum += ((const int8_t *)&column[i / 4 * WORD_STEP])[i % 4];
	}
	return sum;
}

/* Words of a pair of filters: two biases, the weights, two factors, and two exponents in one word.
 */
static inline int32_t conv_wide_pair_words(const struct group *g)
{
	return g->column / 2 + 5;
}

static int32_t conv_stream_group_words(const struct group *g)
{
	return (g->out_c + 1) / 2 * conv_wide_pair_words(g);
}

/* One group of windows: how many there are, how far apart their outputs, and what the weights' zero
 * point takes off their sums. */
struct windows {
	int32_t count;
	int32_t step;
	bool has_zero;
	int32_t zero[WINDOWS];
	struct tinyml_output to;
};

/* The outputs of one filter; y is that of the first window. */
static void conv_wide_put_filter(const int32_t sums[WINDOWS], int32_t factor, int32_t exponent,
				 const struct windows *all, int8_t *y)
{
	const int32_t multiplier = (int32_t)((uint32_t)factor >> 1), shift = ~exponent;
	const int32_t *end = sums + all->count, step = all->step;
	const struct tinyml_output to = all->to;

	do {
		*y = tinyml_output_s8(*sums++, multiplier, shift, &to);
		y += step;
	} while (sums != end);
}

/* ``count`` is 1 for a last odd filter, which has no partner. */
static void conv_wide_put_pair(int32_t sums[SUMS], const uint32_t *end, int32_t count,
			       const struct windows *all, int8_t *y)
{
	const int8_t *exponent = (const int8_t *)&end[2];

	if (all->has_zero) {
		for (int32_t i = 0; i < SUMS; i++) {
			sums[i] -= all->zero[i % WINDOWS];
		}
	}
	for (int32_t i = 0; i < count; i++) {
		conv_wide_put_filter(&sums[i * WINDOWS], (int32_t)end[i], exponent[i], all, &y[i]);
	}
}

static void conv_stream_apply_filters(const struct tinyml_conv_stream_s8 *p, const struct group *g,
				      const uint32_t *columns, int8_t *y, int32_t count,
				      int32_t step)
{
	struct windows all = {
		.count = count,
		.step = step,
		.has_zero = p->weight_zero != 0,
		.to = tinyml_output(p->round_once, p->out_zero, p->out_min, p->out_max),
	};
	const int32_t words = g->column / 2, next = conv_wide_pair_words(g);
	const int8_t *x = (const int8_t *)columns;
	const uint32_t *w = g->filters;
	int32_t left = g->out_c, sums[2 * SUMS];

	for (int32_t i = 0; all.has_zero && i < WINDOWS; i++) {
		all.zero[i] = p->weight_zero * conv_wide_sum_column(&columns[i], g->column);
	}
	for (; left > 2; left -= 4, y += 4, w += 2 * next) {
		if (count > 2) {
			conv_wide_dot_pairs(w, w + next, words, x, sums);
		} else {
			conv_wide_dot_pairs_twice(w, w + next, words, x, sums);
		}
		conv_wide_put_pair(sums, w + 2 + words, 2, &all, y);
		conv_wide_put_pair(&sums[SUMS], w + next + 2 + words, left > 3 ? 2 : 1, &all,
				   y + 2);
	}
	if (left > 0) {
		conv_wide_dot_pair(w, words, x, sums);
		conv_wide_put_pair(sums, w + 2 + words, left, &all, y);
	}
}

#include "conv_stream_s8.h"

void tinyml_conv_wide_s8(const struct tinyml_conv_stream_s8 *p, const int8_t *x, int8_t *y,
			 void *scratch)
{
	conv_stream_convolve(p, x, y, scratch);
}
