/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise convolutions with DSP instructions: channel by channel, two outputs at a time. */

#include <stdbool.h>

#include <tinyml/conv.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include "dsp_s8.h"
#include "plane_s8.h"

/* What is the same for all outputs of a channel. */
struct channel {
	const int8_t *weights;
	int32_t bias;
	int32_t factor;
	int32_t exponent;
	int32_t twice_zero;
	int32_t low;
	int32_t high;
	bool once;
	bool narrow;
	int32_t second; /* 1, or 0 if rows have but one output: it is then its own neighbour */
};

/* Write two outputs, the second first: it may be the same place. */
static inline void write_two(const struct channel *c, int32_t s0, int32_t s1, int8_t *y,
			     int32_t step)
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

/* A 3x3 kernel. In a word of four neighbours, the first three are under the first of two windows,
 * the last three under the second, if they are neighbours too.
 */
static inline __attribute__((always_inline)) void plane_3x3(const struct tinyml_window *w,
							    const struct channel *channel,
							    const struct tinyml_plane *plane,
							    int8_t *first, bool neighbours)
{
	const struct channel c = *channel;
	const int32_t width = plane->width, out_w = w->out_w, step = plane->y_step;
	const int32_t stride = w->stride_w, down = w->stride_h * width;
	const int32_t second = c.second * step;
	const int16x2_t a02 = tinyml_even_bytes(tinyml_load_word(&c.weights[0]));
	const int16x2_t b02 = tinyml_even_bytes(tinyml_load_word(&c.weights[3]));
	const int16x2_t c02 = tinyml_even_bytes(tinyml_load_word(&c.weights[6]));
	const int32_t a1 = c.weights[1], b1 = c.weights[4], c1 = c.weights[7];
	const int8_t *row = plane->at;

	for (int32_t rows = w->out_h; rows > 0; rows--, row += down, first += plane->y_line) {
		const int8_t *x = row;
		int8_t *y = first;

		for (int32_t left = out_w; left > 0; left -= 2) {
			int32_t s0 = c.bias, s1 = c.bias;

			if (left == 1) { /* a last odd output is computed with the one before it */
				x -= c.second * stride;
				y -= second;
			}

#define ROW(from, w02, w1)                                                                         \
	do {                                                                                       \
		const uint32_t word = tinyml_load_word(from);                                      \
		const int16x2_t even = tinyml_even_bytes(word), odd = tinyml_odd_bytes(word);      \
		s0 = __smlad(even, w02, s0);                                                       \
		s0 = __smlabb(odd, w1, s0);                                                        \
		if (neighbours) {                                                                  \
			s1 = __smlad(odd, w02, s1);                                                \
			s1 = __smlatb(even, w1, s1);                                               \
		} else {                                                                           \
			const uint32_t next = tinyml_load_word((from) + stride);                   \
			s1 = __smlad(tinyml_even_bytes(next), w02, s1);                            \
			s1 = __smlabb(tinyml_odd_bytes(next), w1, s1);                             \
		}                                                                                  \
	} while (0)
			ROW(x, a02, a1);
			ROW(x + width, b02, b1);
			ROW(x + 2 * width, c02, c1);
#undef ROW
			write_two(&c, s0, s1, y, second);
			x += 2 * stride;
			y += step + second;
		}
	}
}

__attribute__((noinline)) static void plane_3x3_dense(const struct tinyml_window *w,
						      const struct channel *c,
						      const struct tinyml_plane *plane, int8_t *y)
{
	plane_3x3(w, c, plane, y, true);
}

__attribute__((noinline)) static void plane_3x3_strided(const struct tinyml_window *w,
							const struct channel *c,
							const struct tinyml_plane *plane, int8_t *y)
{
	plane_3x3(w, c, plane, y, false);
}

/* The weights of a channel as pairs of int16, less their zero point: even and odd bytes of every
 * word of a kernel's row, with zeros between them if it is dilated. Returns the words of a row.
 */
static int32_t spread(const struct tinyml_window *w, const int8_t *weights, int32_t zero,
		      int16_t *taps)
{
	const int32_t words = ((w->kernel_w - 1) * w->dilation_w + 4) / 4;

	if (w->dilation_w == 1 && zero == 0) { /* the same, quicker */
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
		return words;
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
	return words;
}

/* Any kernel. */
__attribute__((noinline)) static void plane_any(const struct tinyml_window *w,
						const struct channel *channel,
						const struct tinyml_plane *plane, int32_t words,
						const int16x2_t *taps, int8_t *first)
{
	const struct channel c = *channel;
	const int32_t stride = w->stride_w, step = plane->y_step;
	const int32_t down = w->dilation_h * plane->width - 4 * words;

	const int32_t second = c.second * step, gap = c.second * stride;
	const int32_t kernel_h = w->kernel_h, out_w = w->out_w;
	const int8_t *row = plane->at;

	for (int32_t rows = w->out_h; rows > 0; rows--, first += plane->y_line) {
		const int8_t *from = row;
		int8_t *y = first;

		for (int32_t left = out_w; left > 0; left -= 2) {
			const int16x2_t *tap = taps;
			const int8_t *x;
			int32_t s0 = c.bias, s1 = c.bias;

			if (left == 1) { /* a last odd output is computed with the one before it */
				from -= gap;
				y -= second;
			}
			x = from;
			for (int32_t ky = kernel_h; ky > 0; ky--, x += down) {
				for (const int8_t *end = x + 4 * words; x != end;
				     x += 4, tap += 2) {
					const uint32_t a = tinyml_load_word(x);
					const uint32_t b = tinyml_load_word(x + gap);
					const int16x2_t even = tap[0], odd = tap[1];

					s0 = __smlad(tinyml_even_bytes(a), even, s0);
					s0 = __smlad(tinyml_odd_bytes(a), odd, s0);
					s1 = __smlad(tinyml_even_bytes(b), even, s1);
					s1 = __smlad(tinyml_odd_bytes(b), odd, s1);
				}
			}
			write_two(&c, s0, s1, y, second);
			from += 2 * stride;
			y += step + second;
		}
		row += w->stride_h * plane->width;
	}
}

void tinyml_depthwise_conv_dsp_s8(const struct tinyml_conv_s8 *p, const int8_t *x, int8_t *y,
				  void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t multiple = w->out_c / w->in_c, taps = w->kernel_h * w->kernel_w;
	const bool usual = w->kernel_h == 3 && w->kernel_w == 3 && w->dilation_h == 1 &&
			   w->dilation_w == 1 && p->weight_zero == 0;
	struct channel c = {
		.weights = p->weights,
		.twice_zero = 2 * p->out_zero + 1,
		.low = p->out_min,
		.high = p->out_max,
		.once = p->round_once,
		.narrow = p->out_min > INT8_MIN || p->out_max < INT8_MAX,
		.second = w->out_w > 1,
	};

	for (int32_t n = 0; n < w->batches; n++) {
		const struct tinyml_plane plane = tinyml_plane(p, scratch);
		/* Behind the plane, and what is read past its end. */
		int16_t *spread_taps =
			(int16_t *)(void *)&plane.at[(plane.height * plane.width + 6) & ~3];

		c.weights = p->weights;
		for (int32_t i = 0; i < w->out_c; i++, c.weights += taps) {
			if (i % multiple == 0) {
				tinyml_plane_fill(&plane, w, &x[i / multiple]);
			}
			c.bias = p->bias[i];
			c.factor = (int32_t)((uint32_t)p->multiplier[i] << 1);
			c.exponent = ~p->shift[i];
			if (!usual) {
				const int32_t words =
					spread(w, c.weights, p->weight_zero, spread_taps);

				plane_any(w, &c, &plane, words,
					  (const int16x2_t *)(void *)spread_taps, &y[i]);
			} else if (w->stride_w == 1) {
				plane_3x3_dense(w, &c, &plane, &y[i]);
			} else {
				plane_3x3_strided(w, &c, &plane, &y[i]);
			}
		}
		x += w->in_h * w->in_w * w->in_c;
		y += w->out_h * w->out_w * w->out_c;
	}
}

#endif /* TINYML_CORE_DSP */
