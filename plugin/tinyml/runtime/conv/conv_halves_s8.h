/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Convolutions with two windows in one word (conv_halves_s8.c), four windows by one filter at a
 * time.
 *
 * The file that includes this defines
 *
 *   WEIGHT_BITS   8, or 4: then a word has eight weights, of which the first of all has the last
 *                 four only, in its upper half, if the elements are not a multiple of eight
 */

#ifndef TINYML_CONV_HALVES_S8_H_
#define TINYML_CONV_HALVES_S8_H_

#include "../weighted/assembly.h"
#include "../weighted/output_s8.h"

#define WINDOWS   4
#define WORD_STEP WINDOWS

static inline void conv_columns_put_word(uint32_t *to, uint32_t word)
{
	*to = word;
}

#include "conv_columns_s8.h"

/* Where the outputs of a filter go, and how they are made. Assembly knows the layout. */
struct outputs {
	int8_t *y; /* of window 0 */
	int32_t twice_zero;
	int32_t place[WINDOWS - 1]; /* of the other windows, from there */
	const int8_t *end;          /* one after the last filter */
};
TINYML_OFFSET(struct outputs, y, 0);
TINYML_OFFSET(struct outputs, twice_zero, 4);
TINYML_OFFSET(struct outputs, place, 8);
TINYML_OFFSET(struct outputs, end, 20);

#if defined(__thumb2__)
#include "conv_halves_armv7m.h"
#else
#include "conv_halves_armv6m.h"
#endif

/* Words from the columns of halves to those of bytes that they are made of: as many as a window has
 * elements, and a block of four elements more, so that no block is written before it is read. */
static inline int32_t conv_halves_words_before_bytes(int32_t column)
{
	return column + WINDOWS;
}

static int32_t conv_stream_group_words(const struct group *g)
{
	return g->out_c *
	       ((g->column * WEIGHT_BITS + 31) / 32 + 3); /* and bias, factor, exponent */
}

#if WEIGHT_BITS == 8

/* Four elements of two windows, a word of bytes each. */
static inline void conv_halves_spread_two(int32_t *to, uint32_t q, uint32_t p)
{
	to[0] = (int32_t)(((uint32_t)(int8_t)p << 16) + (uint32_t)(int8_t)q);
	to[1] = (int32_t)(((uint32_t)(int8_t)(p >> 8) << 16) + (uint32_t)(int8_t)(q >> 8));
	to[4] = (int32_t)(((uint32_t)(int8_t)(p >> 16) << 16) + (uint32_t)(int8_t)(q >> 16));
	to[5] = (int32_t)(((uint32_t)((int32_t)p >> 24) << 16) + (uint32_t)((int32_t)q >> 24));
}

/* Columns of halves from columns of bytes: for every two elements two words of windows 0 and 1,
 * then two of windows 2 and 3. */
__attribute__((noinline)) static void conv_halves_spread(int32_t *to, const uint32_t *columns,
							 int32_t column)
{
	for (const int32_t *end = to + 2 * column; to != end; to += 8, columns += WINDOWS) {
		conv_halves_spread_two(&to[0], columns[0], columns[1]);
		conv_halves_spread_two(&to[2], columns[2], columns[3]);
	}
}

#else

/* Columns of halves from columns of bytes: for every element a word of windows 0 and 1, and one of
 * windows 2 and 3. */
__attribute__((noinline)) static void conv_halves_spread(int32_t *to, const uint32_t *columns,
							 int32_t column)
{
	for (const int32_t *end = to + 2 * column; to != end; columns += WINDOWS) {
		uint32_t a = columns[0], b = columns[1], c = columns[2], d = columns[3];

		for (int32_t i = 0; i < 4; i++, to += 2, a >>= 8, b >>= 8, c >>= 8, d >>= 8) {
			to[0] = (int32_t)(((uint32_t)(int8_t)b << 16) + (uint32_t)(int8_t)a);
			to[1] = (int32_t)(((uint32_t)(int8_t)d << 16) + (uint32_t)(int8_t)c);
		}
	}
}

#endif

/* Filters whose outputs have narrower limits than int8. */
static void conv_halves_filters_limited(const int32_t *w, const int32_t *halves, const int32_t *end,
					const struct outputs *outputs,
					const struct tinyml_output *to)
{
	for (int8_t *y = outputs->y; y != outputs->end; y++, w += 2) {
		int32_t sums[WINDOWS];

		w = conv_halves_dot_filter(w, halves, end, sums);
		for (int32_t i = WINDOWS - 1; i >= 0; i--) {
			y[i > 0 ? outputs->place[i - 1] : 0] = tinyml_output_s8(
				sums[i], (int32_t)((uint32_t)w[0] >> 1), ~w[1], to);
		}
	}
}

/* All filters of a group at `count` positions, whose outputs are `step` bytes apart. */
static void conv_stream_apply_filters(const struct tinyml_conv_stream_s8 *p, const struct group *g,
				      const uint32_t *columns, int8_t *y, int32_t count,
				      int32_t step)
{
	const struct tinyml_output to =
		tinyml_output(p->round_once, p->out_zero, p->out_min, p->out_max);
	const int32_t *w = (const int32_t *)g->filters;
	int32_t *halves = (int32_t *)&columns[-conv_halves_words_before_bytes(g->column)];
	const int32_t *end = &halves[2 * g->column];
	struct outputs outputs = {.y = y, .twice_zero = to.twice_zero, .end = y + g->out_c};

	for (int32_t i = 1; i < WINDOWS; i++) {
		/* Missing windows write to the last window's place, which is written last. */
		outputs.place[i - 1] = (i < count ? i : count - 1) * step;
	}
	conv_halves_spread(halves, columns, g->column);
	if (to.narrow) {
		conv_halves_filters_limited(w, halves, end, &outputs, &to);
	} else if (p->round_once) {
		conv_halves_filters_once(w, halves, end, &outputs);
	} else {
		conv_halves_filters_twice(w, halves, end, &outputs);
	}
}

#include "conv_stream_s8.h"

#endif /* TINYML_CONV_HALVES_S8_H_ */
