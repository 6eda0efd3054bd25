/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise convolutions for Arm cores without DSP instructions: two outputs of a channel at a
 * time, one of the upper half of the output and one of the lower half. Their elements are in one
 * word, h = 65536 * p + q, so that one multiplication by a weight serves both.
 *
 * Products of two elements are added, A = w0 * h0 + w1 * h1, before they are taken apart. The
 * compiler proves for every layer that |w0| + |w1| <= 255, so both sums are within int16. Then
 * (A + 32768) >> 16 is exactly w0 * p0 + w1 * p1, and these add up to P. The A add up to T modulo
 * 2^32, so Q = T - 65536 * P in the end. */

#include <stddef.h>

#include <tinyml/tinyml.h>

#if defined(__thumb__) && !TINYML_CORE_DSP

#include <tinyml/depthwise_conv.h>

#include "../weighted/assembly.h"
#include "../weighted/nibbles_s8.h"
#include "../weighted/output_s8.h"

#define NINE     9
#define ROW_OF_3 3
#define WORD     ((int32_t)sizeof(int32_t))

/* What the walk over the output of a channel is given. Assembly knows the order of the members. */
struct walk {
	int32_t bias;       /* P at the start */
	int32_t begin;      /* T at the start */
	int32_t nine[NINE]; /* the taps of a 3x3 kernel */
	int32_t factor_low;
	int32_t factor_high;
	int32_t exponent;
	int32_t twice_zero;
	int32_t below; /* from an output of the upper half to that of the lower half */
	int32_t next;  /* from the end of a window to the next window of the row, in bytes */
	int32_t y_step;
	const int32_t *row_end; /* where the window after the last one of the row would be */
	int32_t down;           /* from the end of a row of a window to its next row, in bytes */
	const int32_t *row;     /* the first window of the row */
	int8_t *y;              /* its output */
	int32_t line;           /* from one row of windows to the next, in bytes */
	int32_t y_line;
	int32_t rows;
	int32_t *taps; /* of any kernel: rows of an even number of taps */
	const int32_t *taps_end;
	int32_t tap_bytes; /* of a row */
};
TINYML_OFFSET(struct walk, bias, 0);
TINYML_OFFSET(struct walk, begin, 4);
TINYML_OFFSET(struct walk, nine, 8);
TINYML_OFFSET(struct walk, factor_low, 44);
TINYML_OFFSET(struct walk, factor_high, 48);
TINYML_OFFSET(struct walk, exponent, 52);
TINYML_OFFSET(struct walk, twice_zero, 56);
TINYML_OFFSET(struct walk, below, 60);
TINYML_OFFSET(struct walk, next, 64);
TINYML_OFFSET(struct walk, y_step, 68);
TINYML_OFFSET(struct walk, row_end, 72);
TINYML_OFFSET(struct walk, down, 76);
TINYML_OFFSET(struct walk, row, 80);
TINYML_OFFSET(struct walk, y, 84);
TINYML_OFFSET(struct walk, line, 88);
TINYML_OFFSET(struct walk, y_line, 92);
TINYML_OFFSET(struct walk, rows, 96);
TINYML_OFFSET(struct walk, taps, 100);
TINYML_OFFSET(struct walk, taps_end, 104);
TINYML_OFFSET(struct walk, tap_bytes, 108);

#if defined(__thumb2__)
#include "depthwise_halves_armv7m.h"
#else
#include "depthwise_halves_armv6m.h"
#endif

/* The words of a channel: rows that windows of the upper half reach, together with those `apart`
 * rows below. */
struct words {
	int32_t *at;
	int32_t height;
	int32_t width;
	int32_t apart;
	int32_t x_step; /* from one element of a row of the input to the next, in bytes */
	int32_t x_line; /* from one row to the next */
};

static inline int32_t depthwise_halves_join(int8_t upper, int8_t lower)
{
	return (int32_t)(((uint32_t)lower << 16) + (uint32_t)upper);
}

/* Elements of two rows, of which the lower one is `below` bytes after the upper one. */
static void depthwise_halves_join_rows(int32_t *to, const int32_t *end, const int8_t *x,
				       int32_t below, int32_t step)
{
	for (; end - to >= 2; to += 2) {
		to[0] = depthwise_halves_join(x[0], x[below]);
		x += step;
		to[1] = depthwise_halves_join(x[0], x[below]);
		x += step;
	}
	if (to < end) {
		*to = depthwise_halves_join(x[0], x[below]);
	}
}

/* Elements of one row (none if x is NULL) and padding in the other. */
static void depthwise_halves_join_padding(int32_t *to, const int32_t *end, const int8_t *x,
					  int32_t step, bool upper, int8_t padding)
{
	for (; to < end; to++, x += x != NULL ? step : 0) {
		const int8_t value = x != NULL ? *x : padding;

		*to = upper ? depthwise_halves_join(value, padding)
			    : depthwise_halves_join(padding, value);
	}
}

static inline __attribute__((always_inline)) void
depthwise_halves_fill_words(const struct words *words, const struct tinyml_depthwise_conv_s8 *p,
			    const int8_t *x)
{
	const struct tinyml_window *w = &p->window;
	const int32_t in_h = w->in_h, most = words->width - w->pad_left;
	const int32_t cols = most < w->in_w ? most : w->in_w;
	const int32_t step = words->x_step, line = words->x_line;
	const int32_t apart = words->apart, below = apart * line;
	int32_t *to = &words->at[w->pad_left];
	int32_t at = -w->pad_top * line;

	for (int32_t row = -w->pad_top, left = words->height; left > 0; left--, row++, at += line) {
		const bool upper = row >= 0 && row < in_h;
		const bool lower = row + apart >= 0 && row + apart < in_h;

		if (upper && lower) {
			if (words->width == 1) { /* a column; most of it at once */
				const int32_t both =
					left < in_h - apart - row ? left : in_h - apart - row;

				depthwise_halves_join_rows(to, to + both, &x[at], below, line);
				to += both - 1;
				left -= both - 1;
				row += both - 1;
				at += (both - 1) * line;
			} else {
				depthwise_halves_join_rows(to, to + cols, &x[at], below, step);
			}
		} else {
			const int8_t *from = upper ? &x[at] : lower ? &x[at + below] : NULL;

			depthwise_halves_join_padding(to, to + cols, from, step, upper,
						      (int8_t)p->in_zero);
		}
		to += words->width;
	}
}

/* The kernel as the walk sees it. */
struct kernel {
	int32_t rows;
	int32_t taps; /* of a row */
	int32_t all;
};

static inline struct kernel depthwise_halves_kernel_of(const struct tinyml_window *w, bool column)
{
	const int32_t all = w->kernel_h * w->kernel_w;

	return column ? (struct kernel){.rows = 1, .taps = all, .all = all}
		      : (struct kernel){.rows = w->kernel_h, .taps = w->kernel_w, .all = all};
}

/* Taps as words: nine, or rows of an even number. */
static inline __attribute__((always_inline)) void
depthwise_halves_set_taps(struct walk *walk, const struct kernel *kernel, const int8_t *weights,
			  bool nine)
{
	int32_t *to = nine ? walk->nine : walk->taps;

	for (int32_t row = 0; row < kernel->rows; row++) {
		for (int32_t i = 0; i < kernel->taps; i++) {
			*to++ = *weights++;
		}
		if (!nine && kernel->taps % 2 != 0) {
			*to++ = 0;
		}
	}
}

struct tinyml_depthwise_halves {
	void (*walk)(struct walk *walk);
	bool nine;
};

/* One object each, so that only what a model uses is linked. */
#define LOOP(name, nine)                                                                           \
	const struct tinyml_depthwise_halves tinyml_depthwise_halves_##name = {                    \
		depthwise_halves_walk_##name, nine};
LOOP(3x3_once, true)
LOOP(3x3_twice, true)
LOOP(any_once, false)
LOOP(any_twice, false)
#undef LOOP

/* The weights of a channel whose outputs are not smaller than half their sums: with weights and
 * bias times 2^(shift + 1) they are half the sums and smaller, and round once. */
static void depthwise_halves_enlarge(int8_t *weights, int32_t count, int32_t shift)
{
	for (int32_t i = 0; i < count; i++) {
		weights[i] = (int8_t)(weights[i] * (2 << shift));
	}
}

/* `large` is the loop for outputs that are not smaller than half their sums; NULL: there are none.
 */
static inline __attribute__((always_inline)) void
depthwise_halves_convolve(const struct tinyml_depthwise_conv_s8 *p, const int8_t *x, int8_t *y,
			  void *scratch, const struct tinyml_depthwise_halves *loop,
			  const struct tinyml_depthwise_halves *large, bool nibbles)
{
	const struct tinyml_window *w = &p->window;
	const int32_t multiple = w->out_c / w->in_c, half = (w->out_h + 1) / 2;
	const bool turned = p->transposed;
	const struct words words = {
		.at = scratch,
		.height = (half - 1) * w->stride_h + w->kernel_h,
		.width = (w->out_w - 1) * w->stride_w + w->kernel_w,
		.apart = (w->out_h - half) * w->stride_h,
		.x_step = turned ? w->in_h * w->in_c : w->in_c,
		.x_line = turned ? w->in_c : w->in_w * w->in_c,
	};
	const bool column = words.width == 1; /* walked like a row, and so is the kernel */
	const struct kernel kernel = depthwise_halves_kernel_of(w, column);
	const int32_t size = words.height * words.width, line = words.width * WORD;
	const int32_t pairs = (kernel.taps + 1) / 2;
	const int32_t step = column ? w->stride_h : w->stride_w;
	const int32_t y_step = turned ? w->out_h * w->out_c : w->out_c;
	const int32_t y_line = turned ? w->out_c : w->out_w * w->out_c;
	struct walk walk = {
		.twice_zero = TWICE_ZERO(p->out_zero),
		.below = (w->out_h - half) * y_line,
		.y_step = column ? y_line : y_step,
		.y_line = y_line,
		.line = line * w->stride_h,
		.taps = &words.at[size],
		.taps_end = &words.at[size + kernel.rows * 2 * pairs],
		.tap_bytes = 2 * pairs * WORD,
	};
	const int32_t read = loop->nine ? ROW_OF_3 * WORD : walk.tap_bytes; /* of a row */
	const uint32_t sums = loop->nine ? 5u : (uint32_t)(kernel.rows * pairs);

	TINYML_ASSERT(TINYML_ALIGNED(scratch, 4) && w->out_c % w->in_c == 0 && w->out_h > 0);
	walk.down = line - read;
	walk.next = step * WORD - kernel.rows * line + (loop->nine ? walk.down : 0);
	for (int32_t n = 0; n < w->batches; n++) {
		const int8_t *weights = p->weights;

		for (int32_t i = 0; i < size; i++) {
			words.at[i] = depthwise_halves_join((int8_t)p->in_zero, (int8_t)p->in_zero);
		}
		for (int32_t i = 0; i < w->out_c;
		     i++, weights += nibbles ? tinyml_nibble_bytes(kernel.all) : kernel.all) {
			if (multiple == 1 || i % multiple == 0) {
				depthwise_halves_fill_words(&words, p, &x[i / multiple]);
			}
			if (nibbles) {
				int8_t bytes[TINYML_NIBBLE_BYTES];

				tinyml_unpack_nibbles(bytes, weights, kernel.all);
				if (p->shift[i] >= 0) {
					depthwise_halves_enlarge(bytes, kernel.all, p->shift[i]);
				}
				depthwise_halves_set_taps(&walk, &kernel, bytes, loop->nine);
			} else {
				depthwise_halves_set_taps(&walk, &kernel, weights, loop->nine);
			}
			walk.bias = p->bias[i];
			if (nibbles && p->shift[i] >= 0) {
				walk.bias = (int32_t)((uint32_t)walk.bias << (p->shift[i] + 1));
			}
			walk.begin = (int32_t)((uint32_t)walk.bias * 0x10001u - ROUNDING * sums);
			depthwise_halves_set_factor(&walk, p->multiplier[i],
						    nibbles && p->shift[i] >= 0 ? -1 : p->shift[i]);
			walk.row = words.at;
			walk.row_end = words.at + (column ? half : w->out_w) * step;
			walk.rows = column ? 1 : half;
			walk.y = &y[i];
			(nibbles && p->shift[i] >= 0 ? large : loop)->walk(&walk);
		}
		x += w->in_h * w->in_w * w->in_c;
		y += w->out_h * w->out_w * w->out_c;
	}
}

void tinyml_depthwise_halves_s8(const struct tinyml_depthwise_conv_s8 *p, const int8_t *x,
				int8_t *y, void *scratch,
				const struct tinyml_depthwise_halves *loop)
{
	depthwise_halves_convolve(p, x, y, scratch, loop, NULL, false);
}

void tinyml_depthwise_nibbles_halves_s8(const struct tinyml_depthwise_conv_s8 *p, const int8_t *x,
					int8_t *y, void *scratch,
					const struct tinyml_depthwise_halves *loop,
					const struct tinyml_depthwise_halves *large)
{
	depthwise_halves_convolve(p, x, y, scratch, loop, large, true);
}

#endif /* defined(__thumb__) && !TINYML_CORE_DSP */
