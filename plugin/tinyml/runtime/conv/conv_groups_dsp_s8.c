/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions in groups with DSP instructions: whole pixels of two windows are
 * copied, each group into columns of its own, to which conv_pairs_s8.c applies its filters. Outputs
 * of both windows are collected in the scratch memory. */

#include <string.h>

#include <tinyml/conv.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include "../weighted/dsp_s8.h"

#include "conv_pairs_dsp_s8.h"

struct conv_groups_dsp {
	int32_t in_c;   /* input channels of a group */
	int32_t tap;    /* elements of a tap in a column: those channels, and what fills them up */
	int32_t column; /* elements of a column, in whole words of bytes */
	uint32_t *columns;
	int8_t *zeros; /* a pixel outside the input */
	int8_t *rows[2];
};

/* Elements 0 and 1 of a word, and 2 and 3; `even` and `odd` have two each. */
static inline uint32_t conv_groups_dsp_first_two(uint32_t even, uint32_t odd)
{
	uint32_t two;

	__asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(two) : "r"(even), "r"(odd));
	return two;
}

static inline uint32_t conv_groups_dsp_last_two(uint32_t even, uint32_t odd)
{
	uint32_t two;

	__asm__("pkhtb %0, %1, %2, asr #16" : "=r"(two) : "r"(odd), "r"(even));
	return two;
}

/* Groups of two channels: a word of each window has those of two groups. */
static void conv_groups_dsp_spread_twos(const struct conv_groups_dsp *g, const int8_t *first,
					const int8_t *second, uint32_t *to, int32_t groups)
{
	const int32_t next = g->column; /* words of both windows */

	for (; groups > 0; groups -= 2, first += 4, second += 4, to += next) {
		const bool last = groups == 1; /* nothing is read behind the last channel */
		const uint32_t a = last ? tinyml_load_half(first) : tinyml_load_word(first);
		const uint32_t b = last ? tinyml_load_half(second) : tinyml_load_word(second);
		const uint32_t even_a = (uint32_t)tinyml_even_bytes(a);
		const uint32_t even_b = (uint32_t)tinyml_even_bytes(b);
		const uint32_t odd_a = (uint32_t)tinyml_odd_bytes(a);
		const uint32_t odd_b = (uint32_t)tinyml_odd_bytes(b);

		to[0] = conv_groups_dsp_first_two(even_a, odd_a);
		to[1] = conv_groups_dsp_first_two(even_b, odd_b);
		if (last) {
			return;
		}
		to += next;
		to[0] = conv_groups_dsp_last_two(even_a, odd_a);
		to[1] = conv_groups_dsp_last_two(even_b, odd_b);
	}
}

/* Groups of one channel; the second element of a tap meets a weight of zero. */
static void conv_groups_dsp_spread_ones(const struct conv_groups_dsp *g, const int8_t *first,
					const int8_t *second, uint32_t *to, int32_t groups)
{
	for (; groups > 0; groups--, to += g->column) {
		to[0] = (uint32_t)*first++ & 0xffffu; /* with its sign */
		to[1] = (uint32_t)*second++ & 0xffffu;
	}
}

/* Four elements of both windows. */
static inline void conv_groups_dsp_put_words(uint32_t *to, uint32_t a, uint32_t b)
{
	to[0] = (uint32_t)tinyml_even_bytes(a);
	to[1] = (uint32_t)tinyml_even_bytes(b);
	to[2] = (uint32_t)tinyml_odd_bytes(a);
	to[3] = (uint32_t)tinyml_odd_bytes(b);
}

/* Groups of more channels, in whole words; elements of the next group meet weights of zero. */
static void conv_groups_dsp_spread(const struct conv_groups_dsp *g, const int8_t *first,
				   const int8_t *second, uint32_t *to, int32_t groups)
{
	const int32_t words = g->tap / 4, skipped = g->column - g->tap;
	const int32_t back = g->tap - g->in_c; /* bytes that are read before they are due */
	int32_t left = groups * words - (back > 0);

	while (left > 0) {
		int32_t some = left < words ? left : words;

		left -= some;
		do {
#ifdef __ARM_FEATURE_UNALIGNED
			uint32_t a, b, c, d;

			/* clang-format off */
			__asm__ volatile("ldr %0, [%4], #4\n\t"
					 "ldr %1, [%5], #4\n\t"
					 "sxtb16 %2, %0\n\t"
					 "sxtb16 %3, %1\n\t"
					 "sxtb16 %0, %0, ror #8\n\t"
					 "sxtb16 %1, %1, ror #8\n\t"
					 "strd %2, %3, [%6], #8\n\t"
					 "strd %0, %1, [%6], #8"
					 : "=&r"(a), "=&r"(b), "=&r"(c), "=&r"(d), "+r"(first),
					   "+r"(second), "+r"(to)
					 :
					 : "memory");
#else
			conv_groups_dsp_put_words(to, tinyml_load_word(first),
					      tinyml_load_word(second));
			first += 4;
			second += 4;
			to += 4;
#endif
		} while (--some > 0);
		first -= back;
		second -= back;
		to += skipped;
	}
	if (back > 0) { /* nothing is read behind the last channel */
		if (words > 1) {
			first += back;
			second += back;
			to -= skipped;
		}
		conv_groups_dsp_put_words(to, tinyml_load_word(first - back) >> 8 * back,
				      tinyml_load_word(second - back) >> 8 * back);
	}
}

/* Copy a pixel of each window. */
static inline void conv_groups_dsp_copy(const struct conv_groups_dsp *g, const int8_t *first,
				    const int8_t *second, uint32_t *to, int32_t groups)
{
	if (g->in_c == 2) {
		conv_groups_dsp_spread_twos(g, first, second, to, groups);
	} else if (g->in_c == 1) {
		conv_groups_dsp_spread_ones(g, first, second, to, groups);
	} else {
		conv_groups_dsp_spread(g, first, second, to, groups);
	}
}

/* The pixel that a tap of a window meets, or one of zeros. */
static inline const int8_t *conv_groups_dsp_pixel(const struct tinyml_window *w, const int8_t *x,
					      const int8_t *zeros, int32_t row, int32_t col)
{
	const bool inside = row >= 0 && row < w->in_h && col >= 0 && col < w->in_w;

	return inside ? &x[(row * w->in_w + col) * w->in_c] : zeros;
}

/* Copy the windows at two positions. */
static void conv_groups_dsp_gather(const struct tinyml_conv_stream_s8 *p, const struct conv_groups_dsp *g,
			       const int8_t *x, int32_t at, int32_t other)
{
	const struct tinyml_window *w = &p->window;
	const int32_t row_a = at / w->out_w, row_b = other / w->out_w;
	const int32_t left_a = (at - row_a * w->out_w) * w->stride_w - w->pad_left;
	const int32_t left_b = (other - row_b * w->out_w) * w->stride_w - w->pad_left;
	const int32_t top_a = row_a * w->stride_h - w->pad_top;
	const int32_t top_b = row_b * w->stride_h - w->pad_top;
	/* What the last tap leaves between the window and the end of the input. */
	const int32_t below = w->in_h - (w->kernel_h - 1) * w->dilation_h - 1;
	const int32_t right = w->in_w - (w->kernel_w - 1) * w->dilation_w - 1;
	const bool inside = (top_a | left_a | top_b | left_b) >= 0 && top_b <= below &&
			    top_a <= below && left_a <= right && left_b <= right;
	const int32_t apart = (top_b - top_a) * w->in_w + left_b - left_a;
	const int8_t *line = &x[(top_a * w->in_w + left_a) * w->in_c];
	uint32_t *to = g->columns;

	for (int32_t ky = 0; ky < w->kernel_h; ky++, line += w->dilation_h * w->in_w * w->in_c) {
		const int8_t *pixel = line;

		for (int32_t kx = 0; kx < w->kernel_w; kx++, to += g->tap) {
			const int8_t *a = pixel, *b = &pixel[apart * w->in_c];

			if (!inside) {
				const int32_t row = ky * w->dilation_h, col = kx * w->dilation_w;

				a = conv_groups_dsp_pixel(w, x, g->zeros, top_a + row, left_a + col);
				b = conv_groups_dsp_pixel(w, x, g->zeros, top_b + row, left_b + col);
			}
			conv_groups_dsp_copy(g, a, b, to, p->groups);
			pixel += w->dilation_w * w->in_c;
		}
	}
}

/* All filters of all groups at both windows; outputs are limited to int8. */
static void conv_groups_dsp_apply(const struct tinyml_conv_stream_s8 *p, const struct conv_groups_dsp *g)
{
	const int32_t out_c = p->window.out_c / p->groups, rest = out_c % 4;
	const int32_t twice_zero = 2 * p->out_zero + 1, fours = out_c / 4 + (rest == 3);
	const uint32_t *filters = (const uint32_t *)p->filters, *columns = g->columns;
	int8_t *first = g->rows[0], *second = g->rows[1];

	for (int32_t i = 0; i < p->groups; i++, columns += g->column) {
		const uint32_t *end = columns + g->column;
		struct tinyml_conv_pairs_outputs to = {first, second, twice_zero, fours};

		if (fours > 0) {
			filters =
				p->round_once
					? tinyml_conv_pairs_fours_once(filters, columns, end, &to)
					: tinyml_conv_pairs_fours_twice(filters, columns, end, &to);
		}
		if (rest == 1 || rest == 2) {
			int32_t sums[4];
			const int32_t *factor;
			const int8_t *exponent;

			filters = tinyml_conv_pairs_dot_two(filters, columns, end, sums);
			factor = (const int32_t *)filters;
			exponent = (const int8_t *)&filters[2];
			for (int32_t j = 0; j < rest; j++) {
				to.first[j] = (int8_t)tinyml_output_dsp(sums[2 * j], factor[j],
									exponent[j], p->round_once,
									twice_zero);
				to.second[j] = (int8_t)tinyml_output_dsp(sums[2 * j + 1], factor[j],
									 exponent[j], p->round_once,
									 twice_zero);
			}
			filters += 3;
		}
		/* A group of three, seven, ... filters writes one more, which the next overwrites.
		 */
		first += out_c;
		second += out_c;
	}
}

/* Outputs of one position within their limits. */
static void conv_groups_dsp_put(const struct tinyml_conv_stream_s8 *p, const int8_t *row, int8_t *y)
{
	const uint32_t low = (uint8_t)p->out_min * 0x01010101u;
	const uint32_t high = (uint8_t)p->out_max * 0x01010101u;

	for (int32_t left = p->window.out_c; left > 0; left -= 4, row += 4, y += 4) {
		uint32_t word = tinyml_load_word(row);

		/* clang-format off */
		__asm__("ssub8 r12, %0, %1\n\t"
			"sel %0, %0, %1\n\t"
			"ssub8 r12, %2, %0\n\t"
			"sel %0, %0, %2"
			: "+r"(word)
			: "r"(low), "r"(high)
			: "r12", "cc");
		/* clang-format on */
		memcpy(y, &word, left < 4 ? (size_t)left : 4);
	}
}

void tinyml_conv_groups_dsp_s8(const struct tinyml_conv_stream_s8 *p, const int8_t *x, int8_t *y,
			       void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t positions = w->out_h * w->out_w, row = (w->out_c + 4) & ~3;
	struct conv_groups_dsp g = {.in_c = w->in_c / p->groups, .columns = scratch};

	TINYML_ASSERT(w->in_c % p->groups == 0 && w->out_c % p->groups == 0);
	TINYML_ASSERT(TINYML_ALIGNED(scratch, 4) && TINYML_ALIGNED(p->filters, 4));
	TINYML_ASSERT(p->out_min <= p->out_max);
	g.tap = g.in_c <= 2 ? 2 : (g.in_c + 3) & ~3;
	g.column = (w->kernel_h * w->kernel_w * g.tap + 3) & ~3;
	g.rows[0] = (int8_t *)&g.columns[p->groups * g.column];
	g.rows[1] = g.rows[0] + row;
	g.zeros = g.rows[1] + row;
	memset(g.zeros, p->in_zero, (size_t)w->in_c);
	for (int32_t item = 0; item < w->batches; item++) {
		for (int32_t at = 0; at < positions; at += 2, y += 2 * w->out_c) {
			const bool both = at + 1 < positions;

			conv_groups_dsp_gather(p, &g, x, at, both ? at + 1 : at);
			conv_groups_dsp_apply(p, &g);
			conv_groups_dsp_put(p, g.rows[0], y);
			if (both) {
				conv_groups_dsp_put(p, g.rows[1], y + w->out_c);
			}
		}
		y -= positions % 2 * w->out_c;
		x += w->in_h * w->in_w * w->in_c;
	}
}

#endif /* TINYML_CORE_DSP */
