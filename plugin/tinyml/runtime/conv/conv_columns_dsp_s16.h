/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Columns for convolutions with int16 activations and DSP instructions: three windows side by side,
 * two elements in a word, words of windows in turn; before them -128 times the sum of each window.
 */

#ifndef TINYML_CONV_COLUMNS_DSP_S16_H_
#define TINYML_CONV_COLUMNS_DSP_S16_H_

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "../weighted/assembly.h"
#include "../weighted/dsp_s16.h"
#include "window_s16.h"

#define WINDOWS 3

struct conv_columns_dsp_s16 {
	int32_t first_in;
	int32_t in_c;
	int32_t elements;  /* of a filter */
	int32_t taps;      /* adjacent in the input: of a row of the kernel, or one */
	bool one_run;      /* all of a window is adjacent */
	bool flat;         /* each position of the input is a window, in the order of outputs */
	bool narrow;       /* rows of taps are more than words of a row */
	int32_t padded;    /* up to a multiple of four */
	uint32_t *columns; /* of each window -128 times the sum of its elements, then these */
	int16_t *window;   /* one that is collected first */
};

/* Where windows are, and the sums of their elements. */
struct conv_columns_dsp_s16_sources {
	const int16_t *from[WINDOWS];
	int32_t sums[WINDOWS];
};
TINYML_OFFSET(struct conv_columns_dsp_s16_sources, from, 0);
TINYML_OFFSET(struct conv_columns_dsp_s16_sources, sums, 12);

/* The next elements of all windows, whose number is even, from `offset` bytes on: two in a word,
 * words of windows in turn. Returns where the next ones go.
 */
TINYML_ASSEMBLY static uint32_t *
conv_columns_dsp_s16_put_all(uint32_t *to TINYML_UNSEEN,
			     struct conv_columns_dsp_s16_sources *sources TINYML_UNSEEN,
			     int32_t elements TINYML_UNSEEN, int32_t offset TINYML_UNSEEN)
{
	/* clang-format off */
#define TWO                                                                                        \
	"ldr r10, [r4], #4\n\t"                                                                    \
	"ldr r11, [r5], #4\n\t"                                                                    \
	"ldr r12, [r6], #4\n\t"                                                                    \
	"smlad r7, r10, r3, r7\n\t"                                                                \
	"smlad r8, r11, r3, r8\n\t"                                                                \
	"smlad r9, r12, r3, r9\n\t"                                                                \
	"stm r0!, {r10, r11, r12}\n\t"
	__asm__ volatile(
		"push {r4-r11, lr}\n\t"
		"ldm r1, {r4-r9}\n\t"
		"add r4, r3\n\t"
		"add r5, r3\n\t"
		"add r6, r3\n\t"
		"mov r3, #0x00010001\n\t"
		"subs r2, #8\n\t"
		"blt 2f\n"
		"1:\n\t"
		TWO
		TWO
		TWO
		TWO
		"subs r2, #8\n\t"
		"bge 1b\n"
		"2:\n\t"
		"adds r2, #8\n\t"
		"beq 4f\n"
		"3:\n\t"
		TWO
		"subs r2, #2\n\t"
		"bne 3b\n"
		"4:\n\t"
		"add r1, #12\n\t"
		"stm r1, {r7-r9}\n\t"
		"pop {r4-r11, pc}\n\t");
	/* clang-format on */
#undef TWO
}

/* The same for one window: its words are WINDOWS apart. */
static uint32_t *conv_columns_dsp_s16_put(uint32_t *to, const int16_t *from, int32_t elements,
					  int32_t *sum)
{
	int32_t total = *sum;

#define TWO(i)                                                                                     \
	do {                                                                                       \
		const uint32_t two = tinyml_load_word(from + 2 * (i));                             \
                                                                                                   \
		to[WINDOWS * (i)] = two;                                                           \
		total = __smlad((int16x2_t)two, (int16x2_t)0x00010001, total);                     \
	} while (0)
	for (; elements >= 8; elements -= 8, from += 8, to += 4 * WINDOWS) {
		TWO(0);
		TWO(1);
		TWO(2);
		TWO(3);
	}
	for (; elements > 0; elements -= 2, from += 2, to += WINDOWS) {
		TWO(0);
	}
#undef TWO
	*sum = total;
	return to;
}

/* Whether the window at (top, left) is inside the input. */
static bool conv_columns_dsp_s16_inside(const struct tinyml_window *w, int32_t top, int32_t left)
{
	return top >= 0 && left >= 0 && top + (w->kernel_h - 1) * w->dilation_h < w->in_h &&
	       left + (w->kernel_w - 1) * w->dilation_w < w->in_w;
}

/* The window at (top, left), `padded` elements that are adjacent: in the input or in a copy. What
 * follows the window in the input meets weights of zero.
 */
static const int16_t *conv_columns_dsp_s16_window(const struct tinyml_window *w,
						  const struct conv_columns_dsp_s16 *g,
						  const int16_t *x, int32_t top, int32_t left,
						  bool inside)
{
	const int32_t start = (top * w->in_w + left) * w->in_c;

	if (inside && g->one_run && start + g->padded <= w->in_h * w->in_w * w->in_c) {
		return &x[start];
	}
	tinyml_copy_window_s16(w, x, top, left, g->in_c, g->window);
	for (int32_t i = g->elements; i < g->padded; i++) {
		g->window[i] = 0;
	}
	return g->window;
}

/* Words of a row of taps, each of so many rows: those of a row are next to each other, rows are
 * `step` bytes apart in the column and `line` bytes in the input. The number of rows is 1 or more.
 * Returns the sum with their elements.
 */
TINYML_ASSEMBLY static int32_t
conv_columns_dsp_s16_put_rows(uint32_t *to TINYML_UNSEEN, const int16_t *from TINYML_UNSEEN,
			      int32_t step TINYML_UNSEEN, int32_t line TINYML_UNSEEN,
			      int32_t rows TINYML_UNSEEN, int32_t sum TINYML_UNSEEN)
{
	/* clang-format off */
	__asm__ volatile(
		"push {r4-r7, lr}\n\t"
		"ldrd r4, r5, [sp, #20]\n\t"
		"mov r12, #0x00010001\n\t"
		"subs r4, #2\n\t"
		"blt 2f\n"
		"1:\n\t"
		"ldr r6, [r1]\n\t"
		"ldr r7, [r1, r3]\n\t"
		"add r1, r1, r3, lsl #1\n\t"
		"smlad r5, r6, r12, r5\n\t"
		"str r6, [r0]\n\t"
		"smlad r5, r7, r12, r5\n\t"
		"str r7, [r0, r2]\n\t"
		"add r0, r0, r2, lsl #1\n\t"
		"subs r4, #2\n\t"
		"bge 1b\n"
		"2:\n\t"
		"cmn r4, #1\n\t"
		"bne 3f\n\t"
		"ldr r6, [r1]\n\t"
		"smlad r5, r6, r12, r5\n\t"
		"str r6, [r0]\n"
		"3:\n\t"
		"mov r0, r5\n\t"
		"pop {r4-r7, pc}\n\t");
	/* clang-format on */
}

/* The same for a word of which one element is padding: the second one, or with a shift of 16 the
 * first one. */
static int32_t conv_columns_dsp_s16_put_halves(uint32_t *to, const int16_t *from, int32_t step,
					       int32_t line, int32_t rows, uint32_t shift)
{
	int32_t sum = 0;

	for (; rows > 0; rows--, to += step, from += line) {
		const int32_t one = *from;

		*to = (uint32_t)(uint16_t)one << shift;
		sum += one;
	}
	return sum;
}

static void conv_columns_dsp_s16_put_zeros(uint32_t *to, int32_t words)
{
	for (; words > 0; words--, to += WINDOWS) {
		*to = 0;
	}
}

/* Copy the narrow window at (top, left), one word of all rows of taps after the other. Returns the
 * sum of its elements.
 */
__attribute__((noinline)) static int32_t
conv_columns_dsp_s16_gather_down(const struct tinyml_window *w,
				 const struct conv_columns_dsp_s16 *g, const int16_t *x,
				 int32_t top, int32_t left, uint32_t *column)
{
	const int32_t words = w->kernel_w * g->in_c / 2, line = w->dilation_h * w->in_w * w->in_c;
	const int32_t first = left < 0 ? -left * w->in_c : 0; /* element of a row that is inside */
	const int32_t end = (w->in_w - left) * w->in_c;       /* what follows is not */
	const struct tinyml_taps_s16 rows =
		tinyml_taps_s16(top, w->kernel_h, w->dilation_h, w->in_h);
	const int32_t after = w->kernel_h - rows.first - rows.count, step = WINDOWS * words;
	int32_t sum = 0;

	if (g->padded != g->elements) {
		column[step * w->kernel_h] = 0;
	}
	if (rows.count <= 0) {
		conv_columns_dsp_s16_put_zeros(column, words * w->kernel_h);
		return 0;
	}
	conv_columns_dsp_s16_put_zeros(column, words * rows.first);
	column += step * rows.first;
	conv_columns_dsp_s16_put_zeros(&column[step * rows.count], words * after);
	x += ((top + rows.first * w->dilation_h) * w->in_w + left) * w->in_c;
	for (int32_t at = 0; at < 2 * words; at += 2, column += WINDOWS) {
		if (at >= first && at + 1 < end) {
			sum = conv_columns_dsp_s16_put_rows(column, &x[at], 4 * step, 2 * line,
							    rows.count, sum);
		} else if (at + 1 >= first && at < end) {
			const bool second = at < first;

			sum += conv_columns_dsp_s16_put_halves(column, &x[at + second], step, line,
							       rows.count, second ? 16 : 0);
		} else {
			for (int32_t i = 0; i < rows.count; i++) {
				column[i * step] = 0;
			}
		}
	}
	return sum;
}

/* Copy the window at (top, left), of which x is the first channel, into a column. */
static void conv_columns_dsp_s16_gather(const struct tinyml_window *w,
					const struct conv_columns_dsp_s16 *g, const int16_t *x,
					int32_t top, int32_t left, uint32_t *column, int32_t *sum)
{
	const int32_t taps = g->taps, run = taps * g->in_c;
	const bool inside = conv_columns_dsp_s16_inside(w, top, left);

	if (!inside || g->one_run || run % 2 != 0) {
		const int16_t *window = conv_columns_dsp_s16_window(w, g, x, top, left, inside);

		conv_columns_dsp_s16_put(column, window, g->padded, sum);
		return;
	}
	for (int32_t ky = 0; ky < w->kernel_h; ky++, top += w->dilation_h) {
		for (int32_t kx = 0; kx < w->kernel_w; kx += taps) {
			const int32_t col = left + kx * w->dilation_w;

			column = conv_columns_dsp_s16_put(
				column, &x[(top * w->in_w + col) * w->in_c], run, sum);
		}
	}
	if (g->padded != g->elements) { /* by two: their weights are zero */
		*column = 0;
	}
}

/* Copy windows that are all inside the input. */
static void conv_columns_dsp_s16_gather_all(const struct tinyml_window *w,
					    const struct conv_columns_dsp_s16 *g,
					    struct conv_columns_dsp_s16_sources *sources)
{
	const int32_t taps = g->taps, run = taps * g->in_c;
	const int32_t tap = 2 * taps * w->dilation_w * w->in_c;
	const int32_t line = 2 * w->dilation_h * w->in_w * w->in_c;
	uint32_t *to = g->columns + WINDOWS;

	if (g->one_run) {
		conv_columns_dsp_s16_put_all(to, sources, g->padded, 0);
		return;
	}
	for (int32_t ky = 0; ky < w->kernel_h; ky++) {
		for (int32_t kx = 0; kx < w->kernel_w / taps; kx++) {
			to = conv_columns_dsp_s16_put_all(to, sources, run, ky * line + kx * tap);
		}
	}
	if (g->padded != g->elements) {
		memset(to, 0, sizeof(*to) * WINDOWS);
	}
}

/* The sums go before the columns. */
static inline void conv_columns_dsp_s16_put_sums(const struct conv_columns_dsp_s16 *g,
						 const int32_t *sums)
{
	g->columns[0] = (uint32_t)sums[0] * UINT32_C(-128);
	g->columns[1] = (uint32_t)sums[1] * UINT32_C(-128);
	g->columns[2] = (uint32_t)sums[2] * UINT32_C(-128);
}

/* Fill columns with `count` positions of the input from x on, of which each is a window. */
static inline void conv_columns_dsp_s16_collect_flat(const struct conv_columns_dsp_s16 *g,
						     const int16_t *x, int32_t step, int32_t count)
{
	struct conv_columns_dsp_s16_sources sources = {
		.from = {x, count > 1 ? x + step : x, count > 2 ? x + 2 * step : x},
	};

	conv_columns_dsp_s16_put_all(g->columns + WINDOWS, &sources, g->padded, 0);
	conv_columns_dsp_s16_put_sums(g, sources.sums);
}

/* Fill columns with `count` narrow windows from a position on. */
__attribute__((noinline)) static void
conv_columns_dsp_s16_collect_narrow(const struct tinyml_window *w,
				    const struct conv_columns_dsp_s16 *g, const int16_t *x,
				    int32_t at, int32_t count)
{
	int32_t row = at / w->out_w, col = at - row * w->out_w;
	int32_t sums[WINDOWS] = {0};

	x += g->first_in;
	for (int32_t j = 0; j < count; j++) {
		sums[j] = conv_columns_dsp_s16_gather_down(w, g, x, row * w->stride_h - w->pad_top,
							   col * w->stride_w - w->pad_left,
							   &g->columns[WINDOWS + j]);
		col++;
		if (col == w->out_w) {
			col = 0;
			row++;
		}
	}
	conv_columns_dsp_s16_put_sums(g, sums);
}

/* Fill columns with `count` windows from a position on; what others contain does not matter. */
__attribute__((noinline)) static void
conv_columns_dsp_s16_collect(const struct tinyml_window *w, const struct conv_columns_dsp_s16 *g,
			     const int16_t *x, int32_t at, int32_t count)
{
	struct conv_columns_dsp_s16_sources sources = {.sums = {0}};
	const int16_t *const end = &x[w->in_h * w->in_w * w->in_c];
	bool all = g->one_run || g->taps * g->in_c % 2 == 0;
	int32_t row = at / w->out_w, col = at - row * w->out_w;
	int32_t tops[WINDOWS], lefts[WINDOWS];

	x += g->first_in;
	for (int32_t j = 0; j < count; j++) {
		tops[j] = row * w->stride_h - w->pad_top;
		lefts[j] = col * w->stride_w - w->pad_left;
		all = all && conv_columns_dsp_s16_inside(w, tops[j], lefts[j]);
		sources.from[j] = &x[(tops[j] * w->in_w + lefts[j]) * w->in_c];
		col++;
		if (col == w->out_w) {
			col = 0;
			row++;
		}
	}
	for (int32_t j = count; j < WINDOWS; j++) {
		sources.from[j] = sources.from[0];
	}
	/* what follows the last window in the input meets weights of zero */
	if (all && (!g->one_run || end - sources.from[count - 1] >= g->padded)) {
		conv_columns_dsp_s16_gather_all(w, g, &sources);
	} else {
		for (int32_t j = 0; j < count; j++) {
			conv_columns_dsp_s16_gather(w, g, x, tops[j], lefts[j],
						    &g->columns[WINDOWS + j], &sources.sums[j]);
		}
	}
	conv_columns_dsp_s16_put_sums(g, sources.sums);
}

#endif /* TINYML_CONV_COLUMNS_DSP_S16_H_ */
