/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise convolutions with DSP instructions: channel by channel, two outputs at a time. */

#include <stdbool.h>

#include <tinyml/depthwise_conv.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include "../weighted/dsp_s8.h"
#include "../weighted/nibbles_s8.h"
#include "depthwise_3x3_dsp_s8.h"
#include "plane_s8.h"

/* What all outputs of a channel share. */
struct channel {
	int32_t bias;
	int32_t factor;
	int32_t exponent;
	int32_t twice_zero;
	int32_t low;
	int32_t high;
	bool once;
	bool narrow;
};

/* Write two outputs, the second first, because both can have the same address. */
static inline void depthwise_conv_dsp_write_two(const struct channel *c, int32_t s0, int32_t s1,
						int8_t *y, int32_t step)
{
	if (c->once) {
		s0 = tinyml_output_dsp(s0, c->factor, c->exponent, true, c->twice_zero);
		s1 = tinyml_output_dsp(s1, c->factor, c->exponent, true, c->twice_zero);
	} else {
		s0 = tinyml_output_dsp(s0, c->factor, c->exponent, false, c->twice_zero);
		s1 = tinyml_output_dsp(s1, c->factor, c->exponent, false, c->twice_zero);
	}
	if (c->narrow) {
		s0 = tinyml_clamp(s0, c->low, c->high);
		s1 = tinyml_clamp(s1, c->low, c->high);
	}
	y[step] = (int8_t)s1;
	y[0] = (int8_t)s0;
}

/* How the sums of two outputs are computed. */
enum loop {
	THREE_BY_THREE,         /* 3x3 kernel, stride 1: two adjacent windows share elements */
	THREE_BY_THREE_STRIDED, /* 3x3 kernel, any stride */
	TWO_WORDS,              /* rows of the kernel span 5 to 7 elements, stride 1 */
	TWO_WORDS_STRIDED,
	ANY,
};

/* The weights of a channel. */
struct taps {
	int16x2_t outer[3]; /* of a 3x3 kernel: first and third of each row */
	int32_t middle[3];
	int16_t *spread; /* of other kernels: see depthwise_conv_dsp_spread_taps() */
	int32_t words;   /* in a row */
	int32_t rows;
	int32_t down; /* from one row to the next, in bytes of the plane */
};

/* Of four adjacent elements in a word, the first three belong to the first window, the last three
 * to the window beside it.
 */
static inline void depthwise_conv_dsp_sum_3x3(const struct taps *taps, const int8_t *x, int32_t gap,
					      bool neighbours, int32_t sums[2])
{
	int32_t s0 = sums[0], s1 = sums[1];

#define ROW(i)                                                                                     \
	do {                                                                                       \
		const uint32_t word = tinyml_load_word(x);                                         \
		const int16x2_t even = tinyml_even_bytes(word), odd = tinyml_odd_bytes(word);      \
		s0 = __smlad(even, taps->outer[i], s0);                                            \
		s0 = __smlabb(odd, taps->middle[i], s0);                                           \
		if (neighbours) {                                                                  \
			s1 = __smlad(odd, taps->outer[i], s1);                                     \
			s1 = __smlatb(even, taps->middle[i], s1);                                  \
		} else {                                                                           \
			const uint32_t next = tinyml_load_word(x + gap);                           \
			s1 = __smlad(tinyml_even_bytes(next), taps->outer[i], s1);                 \
			s1 = __smlabb(tinyml_odd_bytes(next), taps->middle[i], s1);                \
		}                                                                                  \
		x += taps->down;                                                                   \
	} while (0)
	ROW(0);
	ROW(1);
	ROW(2);
#undef ROW
	sums[0] = s0;
	sums[1] = s1;
}

/* Two adjacent windows share two words: elements 2 and 4 of the second window come from both. */
static inline void depthwise_conv_dsp_sum_two_words(const struct taps *taps, const int8_t *x,
						    int32_t gap, bool neighbours, int32_t sums[2])
{
	const int16x2_t *tap = (const int16x2_t *)(const void *)taps->spread;
	int32_t s0 = sums[0], s1 = sums[1];

	for (int32_t row = taps->rows; row > 0; row--, x += taps->down, tap += 4) {
		const uint32_t u = tinyml_load_word(x), v = tinyml_load_word(x + 4);
		const int16x2_t u_even = tinyml_even_bytes(u), u_odd = tinyml_odd_bytes(u);
		const int16x2_t v_even = tinyml_even_bytes(v), v_odd = tinyml_odd_bytes(v);

		s0 = __smlad(u_even, tap[0], s0);
		s0 = __smlad(u_odd, tap[1], s0);
		s0 = __smlad(v_even, tap[2], s0);
		s0 = __smlad(v_odd, tap[3], s0);
		if (neighbours) {
			int16x2_t both; /* element 4 below element 2; SMLADX exchanges them */

			__asm__("pkhbt %0, %1, %2" : "=r"(both) : "r"(v_even), "r"(u_even));
			s1 = __smlad(u_odd, tap[0], s1);
			s1 = __smladx(both, tap[1], s1);
			s1 = __smlad(v_odd, tap[2], s1);
			s1 = __smlatb(v_even, tap[3], s1);
		} else {
			const uint32_t p = tinyml_load_word(x + gap);
			const uint32_t q = tinyml_load_word(x + gap + 4);

			s1 = __smlad(tinyml_even_bytes(p), tap[0], s1);
			s1 = __smlad(tinyml_odd_bytes(p), tap[1], s1);
			s1 = __smlad(tinyml_even_bytes(q), tap[2], s1);
			s1 = __smlad(tinyml_odd_bytes(q), tap[3], s1);
		}
	}
	sums[0] = s0;
	sums[1] = s1;
}

static inline void depthwise_conv_dsp_sum_any(const struct taps *taps, const int8_t *x, int32_t gap,
					      int32_t sums[2])
{
	const int32_t width = 4 * taps->words, down = taps->down - width;
	const int16x2_t *tap = (const int16x2_t *)(const void *)taps->spread;
	int32_t s0 = sums[0], s1 = sums[1];

	for (int32_t row = taps->rows; row > 0; row--, x += down) {
		for (const int8_t *end = x + width; x != end; x += 4, tap += 2) {
			const uint32_t a = tinyml_load_word(x), b = tinyml_load_word(x + gap);
			const int16x2_t even = tap[0], odd = tap[1];

			s0 = __smlad(tinyml_even_bytes(a), even, s0);
			s0 = __smlad(tinyml_odd_bytes(a), odd, s0);
			s1 = __smlad(tinyml_even_bytes(b), even, s1);
			s1 = __smlad(tinyml_odd_bytes(b), odd, s1);
		}
	}
	sums[0] = s0;
	sums[1] = s1;
}

/* All outputs of a channel. */
static inline __attribute__((always_inline)) void
depthwise_conv_dsp_plane(const struct tinyml_window *w, const struct channel *channel,
			 const struct taps *weights, const struct tinyml_plane *plane,
			 int8_t *first, enum loop loop)
{
	const struct channel c = *channel;
	const struct taps taps = *weights;
	/* If rows have a single output, it is paired with itself. */
	const int32_t stride = w->stride_w, gap = w->out_w > 1 ? stride : 0;
	const int32_t step = plane->y_step, second = w->out_w > 1 ? step : 0;
	const int32_t down = w->stride_h * plane->width;
	const int8_t *row = plane->at;

	for (int32_t rows = w->out_h; rows > 0; rows--, row += down, first += plane->y_line) {
		const int8_t *x = row;
		int8_t *y = first;

		for (int32_t left = w->out_w; left > 0; left -= 2) {
			int32_t sums[2] = {c.bias, c.bias};

			if (left ==
			    1) { /* compute a last odd output together with the one before it */
				x -= gap;
				y -= second;
			}
			if (loop == THREE_BY_THREE || loop == THREE_BY_THREE_STRIDED) {
				depthwise_conv_dsp_sum_3x3(&taps, x, gap, loop == THREE_BY_THREE,
							   sums);
			} else if (loop == TWO_WORDS || loop == TWO_WORDS_STRIDED) {
				depthwise_conv_dsp_sum_two_words(&taps, x, gap, loop == TWO_WORDS,
								 sums);
			} else {
				depthwise_conv_dsp_sum_any(&taps, x, gap, sums);
			}
			depthwise_conv_dsp_write_two(&c, sums[0], sums[1], y, second);
			x += 2 * stride;
			y += 2 * step;
		}
	}
}

/* The weights of a channel as pairs of int16, less their zero point: even and odd bytes of every
 * word of a kernel's row, with zeros between them if it is dilated.
 */
static void depthwise_conv_dsp_spread_taps(const struct tinyml_depthwise_conv_s8 *p,
					   const int8_t *weights, struct taps *to)
{
	const struct tinyml_window *w = &p->window;
	const int32_t zero = p->weight_zero, words = to->words;
	int16_t *taps = to->spread;

	if (w->dilation_w == 1 && zero == 0) { /* the same, faster */
		const uint32_t last = UINT32_MAX >> (-w->kernel_w & 3) * 8;
		int16x2_t *pairs = (int16x2_t *)(void *)taps;

		for (int32_t ky = 0; ky < w->kernel_h; ky++) {
			for (int32_t i = 0; i < words; i++, weights += 4) {
				const uint32_t word = tinyml_load_word(weights) &
						      (i == words - 1 ? last : UINT32_MAX);

				*pairs++ = tinyml_even_bytes(word);
				*pairs++ = tinyml_odd_bytes(word);
			}
			weights -= -w->kernel_w & 3;
		}
		return;
	}
	memset(taps, 0, (size_t)(w->kernel_h * words) * 8u);
	for (int32_t ky = 0; ky < w->kernel_h; ky++, taps += 4 * words) {
		for (int32_t kx = 0; kx < w->kernel_w; kx++) {
			const int32_t at = kx * w->dilation_w;

			/* 0, 2, 1, 3 */
			taps[(at & ~3) + (at & 1) * 2 + (at >> 1 & 1)] =
				(int16_t)(*weights++ - zero);
		}
	}
}

/* The taps of a 3x3 kernel; or those of a single row of up to nine, as three rows of three. */
static void depthwise_conv_dsp_load_taps_3x3(const struct tinyml_depthwise_conv_s8 *p,
					     const int8_t *weights, struct taps *to)
{
	int32_t left = p->window.kernel_h * p->window.kernel_w;

	for (int32_t row = 0; row < 3; row++, weights += 3, left -= 3) {
		const uint32_t there =
			left >= 3 ? UINT32_MAX : (1u << 8 * (left > 0 ? left : 0)) - 1u;

		to->outer[row] =
			left > 0 ? tinyml_even_bytes(tinyml_load_word(weights) & there) : 0;
		to->middle[row] = left > 1 ? weights[1] : 0;
	}
}

struct tinyml_depthwise_dsp {
	void (*load)(const struct tinyml_depthwise_conv_s8 *p, const int8_t *weights,
		     struct taps *to);
	void (*convolve_plane)(const struct tinyml_window *w, const struct channel *c,
			       const struct taps *taps, const struct tinyml_plane *plane,
			       int8_t *y);
};

/* One function each, so that none reserves registers for the others, and only what a model uses is
 * linked.
 */
#define LOOP(name, load, loop)                                                                     \
	__attribute__((noinline)) static void depthwise_conv_dsp_plane_##name(                     \
		const struct tinyml_window *w, const struct channel *c, const struct taps *taps,   \
		const struct tinyml_plane *plane, int8_t *y)                                       \
	{                                                                                          \
		depthwise_conv_dsp_plane(w, c, taps, plane, y, loop);                              \
	}                                                                                          \
	const struct tinyml_depthwise_dsp tinyml_depthwise_dsp_##name = {                          \
		load, depthwise_conv_dsp_plane_##name};
LOOP(3x3, depthwise_conv_dsp_load_taps_3x3, THREE_BY_THREE)
LOOP(3x3_strided, depthwise_conv_dsp_load_taps_3x3, THREE_BY_THREE_STRIDED)
LOOP(two_words, depthwise_conv_dsp_spread_taps, TWO_WORDS)
LOOP(two_words_strided, depthwise_conv_dsp_spread_taps, TWO_WORDS_STRIDED)
LOOP(any, depthwise_conv_dsp_spread_taps, ANY)
#undef LOOP

/* 3x3 kernels, and rows of up to nine, in assembly, each loop a function of its own. */
static struct tinyml_walk_3x3
depthwise_conv_dsp_prepare_3x3(const struct tinyml_window *w, const struct channel *c,
			       const struct taps *taps, const struct tinyml_plane *plane, int8_t *y)
{
	return (struct tinyml_walk_3x3){
		.bias = c->bias,
		.factor = c->factor,
		.twice_zero = c->twice_zero,
		.odd = w->out_w % 2,
		.down = w->kernel_h == 3  ? plane->width
			: w->kernel_w > 3 ? 3
					  : 0,
		.step = plane->y_step,
		.outer = {taps->outer[0], taps->outer[1], taps->outer[2]},
		.middle_0_1 = (uint32_t)(taps->middle[0] & UINT16_MAX) | (uint32_t)taps->middle[1]
										 << 16,
		.middle_2_exponent = (uint32_t)taps->middle[2] << 16 | (uint32_t)c->exponent,
		.x = plane->at,
		.y = y,
		.length = w->out_w / 2 * 2 * w->stride_w,
		.x_line = w->stride_h * plane->width,
		.y_line = plane->y_line,
		.lines = w->out_h,
	};
}

#define LOOP(name, rows, stride, round)                                                            \
	TINYML_WALK_3X3(depthwise_conv_dsp_walk_##name, rows, stride, round)                       \
	static void depthwise_conv_dsp_plane_##name(                                               \
		const struct tinyml_window *w, const struct channel *c, const struct taps *taps,   \
		const struct tinyml_plane *plane, int8_t *y)                                       \
	{                                                                                          \
		struct tinyml_walk_3x3 walk =                                                      \
			depthwise_conv_dsp_prepare_3x3(w, c, taps, plane, y);                      \
                                                                                                   \
		depthwise_conv_dsp_walk_##name(&walk);                                             \
	}                                                                                          \
	const struct tinyml_depthwise_dsp tinyml_depthwise_dsp_##name = {                          \
		depthwise_conv_dsp_load_taps_3x3, depthwise_conv_dsp_plane_##name};
LOOP(3x3_by_1_once, TINYML_ROWS_1, "1", TINYML_ROUND_ONCE)
LOOP(3x3_by_1_twice, TINYML_ROWS_1, "1", TINYML_ROUND_TWICE)
LOOP(3x3_by_2_once, TINYML_ROWS_2, "2", TINYML_ROUND_ONCE)
LOOP(3x3_by_2_twice, TINYML_ROWS_2, "2", TINYML_ROUND_TWICE)
#undef LOOP

/* All outputs of a channel that are not smaller than half their sums, which is rare. */
typedef void depthwise_conv_dsp_large(const struct tinyml_depthwise_conv_s8 *p, int32_t channel,
				      const int8_t *weights, const struct tinyml_plane *plane,
				      int8_t *y);
__attribute__((noinline)) static void
depthwise_conv_dsp_plane_large(const struct tinyml_depthwise_conv_s8 *p, int32_t channel,
			       const int8_t *weights, const struct tinyml_plane *plane, int8_t *y)
{
	const struct tinyml_window *w = &p->window;
	const int32_t multiplier = p->multiplier[channel], shift = p->shift[channel];
	const struct tinyml_output to =
		tinyml_output(p->round_once, p->out_zero, p->out_min, p->out_max);

	if (w->kernel_h == 3 && w->kernel_w == 3 && w->dilation_h == 1 && w->dilation_w == 1) {
		struct taps taps = {.down = plane->width};

		depthwise_conv_dsp_load_taps_3x3(p, weights, &taps);
		for (int32_t row = 0; row < w->out_h; row++) {
			const int8_t *x = &plane->at[row * w->stride_h * plane->width];
			int8_t *to_row = &y[row * plane->y_line];

			for (int32_t left = w->out_w; left > 0; left -= 2) {
				const int32_t two = left > 1; /* a last one is paired with itself */
				int32_t sums[2] = {p->bias[channel], p->bias[channel]};

				depthwise_conv_dsp_sum_3x3(&taps, x, two * w->stride_w, false,
							   sums);
				to_row[two * plane->y_step] =
					tinyml_output_s8(sums[1], multiplier, shift, &to);
				to_row[0] = tinyml_output_s8(sums[0], multiplier, shift, &to);
				x += 2 * w->stride_w;
				to_row += 2 * plane->y_step;
			}
		}
		return;
	}
	for (int32_t at = 0; at < w->out_h * w->out_w; at++) {
		const int32_t row = at / w->out_w, col = at % w->out_w;
		const int8_t *x = &plane->at[row * w->stride_h * plane->width + col * w->stride_w];
		const int8_t *tap = weights;
		int32_t sum = p->bias[channel];

		for (int32_t ky = 0; ky < w->kernel_h; ky++) {
			const int8_t *of_row = &x[ky * w->dilation_h * plane->width];

			for (int32_t kx = 0; kx < w->kernel_w; kx++) {
				sum += *tap++ * of_row[kx * w->dilation_w];
			}
		}
		y[row * plane->y_line + col * plane->y_step] =
			tinyml_output_s8(sum, multiplier, shift, &to);
	}
}

/* `large` is for channels whose shift is not negative; NULL: there are none. */
static inline __attribute__((always_inline)) void
depthwise_conv_dsp_convolve(const struct tinyml_depthwise_conv_s8 *p, const int8_t *x, int8_t *y,
			    void *scratch, const struct tinyml_depthwise_dsp *loop, bool nibbles,
			    depthwise_conv_dsp_large *large)
{
	const struct tinyml_window *w = &p->window;
	const int32_t multiple = w->out_c / w->in_c, size = w->kernel_h * w->kernel_w;
	struct channel c = {
		.twice_zero = 2 * p->out_zero + 1,
		.low = p->out_min,
		.high = p->out_max,
		.once = p->round_once,
		.narrow = p->out_min > INT8_MIN || p->out_max < INT8_MAX,
	};

	for (int32_t n = 0; n < w->batches; n++) {
		const struct tinyml_plane plane = tinyml_plane(p, scratch);
		/* After the plane and the bytes that are read past its end. */
		void *after = &plane.at[(plane.height * plane.width + 6) & ~3];
		struct taps taps = {
			.spread = after,
			.words = ((w->kernel_w - 1) * w->dilation_w + 4) / 4,
			.rows = w->kernel_h,
			.down = w->dilation_h * plane.width,
		};
		const int8_t *weights = p->weights;

		for (int32_t i = 0; i < w->out_c;
		     i++, weights += nibbles ? tinyml_nibble_bytes(size) : size) {
			if (multiple == 1 || i % multiple == 0) {
				tinyml_plane_fill(&plane, w, &x[i / multiple]);
			}
			c.bias = p->bias[i];
			c.factor = (int32_t)((uint32_t)p->multiplier[i] << 1);
			c.exponent = ~p->shift[i];
			if (nibbles) {
				int8_t bytes[TINYML_NIBBLE_BYTES];

				tinyml_unpack_nibbles(bytes, weights, size);
				if (large != NULL && p->shift[i] >= 0) {
					large(p, i, bytes, &plane, &y[i]);
					continue;
				}
				loop->load(p, bytes, &taps);
			} else {
				loop->load(p, weights, &taps);
			}
			loop->convolve_plane(w, &c, &taps, &plane, &y[i]);
		}
		x += w->in_h * w->in_w * w->in_c;
		y += w->out_h * w->out_w * w->out_c;
	}
}

void tinyml_depthwise_conv_dsp_s8(const struct tinyml_depthwise_conv_s8 *p, const int8_t *x,
				  int8_t *y, void *scratch, const struct tinyml_depthwise_dsp *loop)
{
	depthwise_conv_dsp_convolve(p, x, y, scratch, loop, false, NULL);
}

/* Once for both functions below, of which a model may use both. */
__attribute__((noinline)) static void
depthwise_conv_dsp_nibbles(const struct tinyml_depthwise_conv_s8 *p, const int8_t *x, int8_t *y,
			   void *scratch, const struct tinyml_depthwise_dsp *loop,
			   depthwise_conv_dsp_large *large)
{
	depthwise_conv_dsp_convolve(p, x, y, scratch, loop, true, large);
}

void tinyml_depthwise_nibbles_dsp_s8(const struct tinyml_depthwise_conv_s8 *p, const int8_t *x,
				     int8_t *y, void *scratch,
				     const struct tinyml_depthwise_dsp *loop)
{
	depthwise_conv_dsp_nibbles(p, x, y, scratch, loop, depthwise_conv_dsp_plane_large);
}

void tinyml_depthwise_nibbles_right_dsp_s8(const struct tinyml_depthwise_conv_s8 *p,
					   const int8_t *x, int8_t *y, void *scratch,
					   const struct tinyml_depthwise_dsp *loop)
{
	depthwise_conv_dsp_nibbles(p, x, y, scratch, loop, NULL);
}

#endif /* TINYML_CORE_DSP */
