/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions with weights of four bits in plain C: four windows by four filters at a time. An
 * int16 h has an element of all four filters. The sums of x * h, x * (h >> 4), x * (h >> 8) and
 * x * (h >> 12) begin with nothing; each less 16 times the next is that of a single filter, modulo
 * 2^32. */

#include <stdint.h>

#include "../weighted/output_s8.h"

#define WINDOWS   4
#define WORD_STEP WINDOWS

static inline void conv_columns_put_word(uint32_t *to, uint32_t word)
{
	*to = word;
}

#include "conv_columns_s8.h"

/* Compilers that load the operands of the next step early run out of registers. */
#if defined(__GNUC__)
#define IN_ORDER() __asm__ volatile("" ::: "memory")
#else
#define IN_ORDER()
#endif

static int32_t conv_stream_group_words(const struct group *g)
{
	return (g->out_c + 3) / 4 * (g->column / 2 + 9);
}

/* sums[field][window]; returns what follows the weights. */
__attribute__((noinline)) static const uint32_t *conv_nibbles_dot(const uint32_t *filters,
								  const uint32_t *end,
								  const int8_t *x,
								  uint32_t sums[4][WINDOWS])
{
	const int16_t *h = (const int16_t *)filters;
	uint32_t s00 = 0, s01 = 0, s02 = 0, s03 = 0;
	uint32_t s10 = 0, s11 = 0, s12 = 0, s13 = 0;
	uint32_t s20 = 0, s21 = 0, s22 = 0, s23 = 0;
	uint32_t s30 = 0, s31 = 0, s32 = 0, s33 = 0;

	do {
#define WINDOW(i, s0, s1, s2, s3)                                                                  \
	do {                                                                                       \
		const int32_t value = x[i];                                                        \
		s0 += (uint32_t)(value * a);                                                       \
		s1 += (uint32_t)(value * b);                                                       \
		s2 += (uint32_t)(value * c);                                                       \
		s3 += (uint32_t)(value * d);                                                       \
		IN_ORDER();                                                                        \
	} while (0)
#define STEP(i, at)                                                                                \
	do {                                                                                       \
		const int32_t a = h[i], b = a >> 4, c = a >> 8, d = a >> 12;                       \
		WINDOW(at, s00, s10, s20, s30);                                                    \
		WINDOW(4 + (at), s01, s11, s21, s31);                                              \
		WINDOW(8 + (at), s02, s12, s22, s32);                                              \
		WINDOW(12 + (at), s03, s13, s23, s33);                                             \
	} while (0)
		STEP(0, 0);
		STEP(1, 2);
		STEP(2, 1);
		STEP(3, 3);
#undef STEP
#undef WINDOW
		h += 4;
		x += 4 * WINDOWS;
	} while (h != (const int16_t *)end);
	sums[0][0] = s00, sums[0][1] = s01, sums[0][2] = s02, sums[0][3] = s03;
	sums[1][0] = s10, sums[1][1] = s11, sums[1][2] = s12, sums[1][3] = s13;
	sums[2][0] = s20, sums[2][1] = s21, sums[2][2] = s22, sums[2][3] = s23;
	sums[3][0] = s30, sums[3][1] = s31, sums[3][2] = s32, sums[3][3] = s33;
	return end;
}

static uint32_t conv_nibbles_sum_column(const uint32_t *column, int32_t words)
{
	int32_t sum = 0;

	for (int32_t i = 0; i < words; i++, column += WORD_STEP) {
		const int8_t *four = (const int8_t *)column;

		sum += four[0] + four[1] + four[2] + four[3];
	}
	return (uint32_t)sum;
}

/* All filters of a group at `count` positions, whose outputs are `step` bytes apart. */
static void conv_stream_apply_filters(const struct tinyml_conv_stream_s8 *p, const struct group *g,
				      const uint32_t *columns, int8_t *y, int32_t count,
				      int32_t step)
{
	const struct tinyml_output to =
		tinyml_output(p->round_once, p->out_zero, p->out_min, p->out_max);
	const uint32_t *w = g->filters;
	uint32_t zero[WINDOWS], fourth[WINDOWS];

	for (int32_t i = 0; i < count; i++) {
		const uint32_t all = conv_nibbles_sum_column(&columns[i], g->column / 4);

		zero[i] = (uint32_t)p->weight_zero * all;
		fourth[i] = zero[i] - 8u * all; /* this field is less by 8 */
	}
	for (int32_t left = g->out_c; left > 0; left -= 4, y += 4, w += 5) {
		const int32_t *bias = (const int32_t *)w;
		const int8_t *exponent;
		uint32_t sums[4][WINDOWS];

		w = conv_nibbles_dot(w + 4, w + 4 + g->column / 2, (const int8_t *)columns, sums);
		exponent = (const int8_t *)&w[4];
		for (int32_t f = 0; f < 4 && f < left; f++) {
			const int32_t multiplier = (int32_t)(w[f] >> 1), shift = ~exponent[f];

			for (int32_t i = 0; i < count; i++) {
				uint32_t sum = sums[f][i] + (uint32_t)bias[f];

				sum -= f == 3 ? fourth[i] : (sums[f + 1][i] << 4) + zero[i];
				y[i * step + f] =
					tinyml_output_s8((int32_t)sum, multiplier, shift, &to);
			}
		}
	}
}

#include "conv_stream_s8.h"

void tinyml_conv_nibbles_s8(const struct tinyml_conv_stream_s8 *p, const int8_t *x, int8_t *y,
			    void *scratch)
{
	conv_stream_convolve(p, x, y, scratch);
}
