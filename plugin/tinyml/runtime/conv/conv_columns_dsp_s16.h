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
#include "conv_places_s16.h"
#include "window_s16.h"

#define WINDOWS 3

struct conv_columns_dsp_s16 {
	int32_t in_c;
	int32_t elements; /* of a filter */
	int32_t taps;     /* adjacent in the input: of a row of the kernel, or one */
	int32_t run;    /* their elements, and one more that meets zeros if rows are whole words */
	bool one_run;   /* all of a window is adjacent */
	bool flat;      /* each position of the input is a window, in the order of outputs */
	bool narrow;    /* almost all windows have padding, and their rows few words */
	bool down;      /* windows with padding are copied word by word of their rows */
	int32_t padded; /* up to a multiple of four */
	int32_t reach;  /* elements of the input from the start of a window to its end */
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

static inline uint32_t *conv_columns_dsp_s16_put_zeros(uint32_t *to, int32_t words)
{
	for (; words > 0; words--, to += WINDOWS) {
		*to = 0;
	}
	return to;
}

/* Copy the window at (top, left), one word of all rows of taps after the other. Returns the sum of
 * its elements.
 */
__attribute__((noinline)) static int32_t
conv_columns_dsp_s16_gather_down(const struct tinyml_window *w,
				 const struct conv_columns_dsp_s16 *g, const int16_t *x,
				 int32_t top, int32_t left, uint32_t *column)
{
	const int32_t words = g->run / 2, line = w->dilation_h * w->in_w * w->in_c;
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

/* Copy a part of a window, whose pixels are whole words, with zeros for what is padding. */
static void conv_columns_dsp_s16_gather_words(const struct tinyml_window *w,
					      const struct conv_columns_dsp_s16 *g,
					      const struct conv_places_s16_part *part,
					      uint32_t *column, int32_t *sum)
{
	const uint32_t *const end = column + g->padded / 2 * WINDOWS;
	const int32_t pixel = g->in_c / 2, row = w->kernel_w * pixel;
	const int32_t count = part->cols.count, before = part->cols.first * pixel;
	const int32_t line = w->dilation_h * w->in_w * w->in_c, tap = w->dilation_w * w->in_c;
	const int32_t runs = g->taps > 1 ? 1 : count;
	const int32_t run = g->taps > 1 ? count * g->in_c : g->in_c;
	int32_t left = count > 0 ? part->rows.count : 0; /* rows; none: all is padding */
	const int16_t *x = part->x;

	if (left > 0) {
		column = conv_columns_dsp_s16_put_zeros(column, part->rows.first * row);
	}
	for (; left > 0; left--, x += line) {
		const int16_t *from = x;

		column = conv_columns_dsp_s16_put_zeros(column, before);
		for (int32_t i = runs; i > 0; i--, from += tap) {
			column = conv_columns_dsp_s16_put(column, from, run, sum);
		}
		column = conv_columns_dsp_s16_put_zeros(column, row - before - count * pixel);
	}
	for (; column < end; column += WINDOWS) {
		*column = 0;
	}
}

/* The same for an odd number of channels, through memory. */
static void conv_columns_dsp_s16_gather_odd(const struct tinyml_window *w,
					    const struct conv_columns_dsp_s16 *g,
					    const struct conv_places_s16_part *part,
					    uint32_t *column, int32_t *sum)
{
	const uint32_t *const end = column + g->padded / 2 * WINDOWS;
	const int32_t line = w->dilation_h * w->in_w * w->in_c, tap = w->dilation_w * w->in_c;
	const int32_t row = w->kernel_w / g->taps * g->run, count = part->cols.count;
	const int16_t *x = part->x;
	int16_t *to = g->window + part->rows.first * row + part->cols.first * g->in_c;

	if (g->one_run && count == w->kernel_w && part->rows.count == 1) { /* the input's end */
		const int32_t words = g->elements & ~1;

		column = conv_columns_dsp_s16_put(column, x, words, sum);
		if (words < g->elements) {
			*column = (uint16_t)x[words];
			*sum += x[words];
			column += WINDOWS;
		}
		for (; column < end; column += WINDOWS) {
			*column = 0;
		}
		return;
	}
	memset(g->window, 0, 2 * (size_t)g->padded);
	for (int32_t rows = part->rows.count; rows > 0; rows--, to += row, x += line) {
		if (g->taps > 1) {
			tinyml_copy_s16(to, x, count * g->in_c);
		} else {
			tinyml_copy_runs_s16(to, g->in_c, x, tap, g->in_c, count);
		}
	}
	conv_columns_dsp_s16_put(column, g->window, g->padded, sum);
}

/* Copy the window at (top, left), of which x is the first channel, into a column. Returns the sum
 * of its elements.
 */
__attribute__((noinline)) static int32_t
conv_columns_dsp_s16_gather(const struct tinyml_window *w, const struct conv_columns_dsp_s16 *g,
			    const int16_t *x, int32_t top, int32_t left, uint32_t *column)
{
	struct conv_places_s16_part part;
	int32_t sum = 0;

	conv_places_s16_find(w, x, top, left, &part);
	if (g->in_c % 2 == 0) {
		conv_columns_dsp_s16_gather_words(w, g, &part, column, &sum);
	} else {
		conv_columns_dsp_s16_gather_odd(w, g, &part, column, &sum);
	}
	return sum;
}

/* Copy windows that are all inside the input. */
static void conv_columns_dsp_s16_gather_all(const struct tinyml_window *w,
					    const struct conv_columns_dsp_s16 *g,
					    struct conv_columns_dsp_s16_sources *sources)
{
	const int32_t taps = g->taps;
	const int32_t tap = 2 * taps * w->dilation_w * w->in_c;
	const int32_t line = 2 * w->dilation_h * w->in_w * w->in_c;
	uint32_t *to = g->columns + WINDOWS;

	if (g->one_run) {
		conv_columns_dsp_s16_put_all(to, sources, g->padded, 0);
		return;
	}
	for (int32_t ky = 0; ky < w->kernel_h; ky++) {
		for (int32_t kx = 0; kx < w->kernel_w / taps; kx++) {
			to = conv_columns_dsp_s16_put_all(to, sources, g->run,
							  ky * line + kx * tap);
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

/* Fill columns with `count` positions of the input, of which each is a window. Like the function
 * below, this says where outputs belong: those of windows that there are not, where the first ones
 * do.
 */
static inline void conv_columns_dsp_s16_collect_flat(const struct tinyml_window *w,
						     const struct conv_columns_dsp_s16 *g,
						     struct conv_places_s16 *at, int32_t count,
						     int16_t *y[WINDOWS])
{
	const int32_t second = count > 1 ? 1 : 0, third = count > 2 ? 2 : 0;
	struct conv_columns_dsp_s16_sources sources = {
		.from = {at->x, at->x + second * w->in_c, at->x + third * w->in_c},
	};

	y[0] = at->y;
	y[1] = at->y + second * at->step;
	y[2] = at->y + third * at->step;
	at->x += WINDOWS * w->in_c;
	at->y += WINDOWS * at->step;
	conv_columns_dsp_s16_put_all(g->columns + WINDOWS, &sources, g->padded, 0);
	conv_columns_dsp_s16_put_sums(g, sources.sums);
}

/* Fill columns with `count` windows; what others contain does not matter. */
__attribute__((noinline)) static void
conv_columns_dsp_s16_collect(const struct tinyml_window *w, const struct conv_columns_dsp_s16 *g,
			     struct conv_places_s16 *at, int32_t count, int16_t *y[WINDOWS])
{
	struct conv_columns_dsp_s16_sources sources = {.sums = {0}};
	bool all = g->one_run || g->run % 2 == 0;
	const int16_t *x[WINDOWS];
	int32_t tops[WINDOWS], lefts[WINDOWS], before = 0;

	if (g->narrow) {
		for (int32_t j = 0; j < count; j++) {
			sources.sums[j] = conv_columns_dsp_s16_gather_down(
				w, g, at->x, at->row * w->stride_h - w->pad_top,
				at->col * w->stride_w - w->pad_left, &g->columns[WINDOWS + j]);
			y[j] = at->y;
			conv_places_s16_next(w, at);
		}
		for (int32_t j = count; j < WINDOWS; j++) {
			y[j] = y[0];
		}
		conv_columns_dsp_s16_put_sums(g, sources.sums);
		return;
	}
	for (int32_t j = 0; j < count; j++) {
		tops[j] = at->row * w->stride_h - w->pad_top;
		lefts[j] = at->col * w->stride_w - w->pad_left;
		all = all && conv_places_s16_inside(w, tops[j], lefts[j]);
		before = (tops[j] * w->in_w + lefts[j]) * w->in_c;
		x[j] = at->x;
		y[j] = at->y;
		sources.from[j] = &at->x[before];
		conv_places_s16_next(w, at);
	}
	for (int32_t j = count; j < WINDOWS; j++) {
		y[j] = y[0];
		sources.from[j] = sources.from[0];
	}
	/* what follows the last window in the input meets weights of zero */
	if (all && before + g->reach <= w->in_h * w->in_w * w->in_c) {
		conv_columns_dsp_s16_gather_all(w, g, &sources);
	} else {
		for (int32_t j = 0; j < count; j++) {
			sources.sums[j] = (g->down ? conv_columns_dsp_s16_gather_down
						   : conv_columns_dsp_s16_gather)(
				w, g, x[j], tops[j], lefts[j], &g->columns[WINDOWS + j]);
		}
	}
	conv_columns_dsp_s16_put_sums(g, sources.sums);
}

#endif /* TINYML_CONV_COLUMNS_DSP_S16_H_ */
