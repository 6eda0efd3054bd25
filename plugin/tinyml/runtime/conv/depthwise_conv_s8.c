/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise convolutions, channel by channel, two outputs of a row at a time. */

#include <stdbool.h>

#include <tinyml/depthwise_conv.h>

#include "../weighted/nibbles_s8.h"
#include "../weighted/output_s8.h"
#include "plane_s8.h"

/* What all outputs of a channel share. */
struct channel {
	const int8_t *weights;
	int32_t weight_zero;
	int32_t bias;
	int32_t multiplier;
	int32_t shift;
	struct tinyml_output to;
};

/* Hide how a pointer was computed, or the compiler keeps sums of it in memory. */
#define HIDE_ORIGIN(pointer) __asm__("" : "+r"(pointer))

/* Write two outputs, the second first, because both can have the same address. */
static inline void depthwise_conv_s8_write_two(const struct channel *c, int32_t s0, int32_t s1,
					       int8_t *y, int32_t step)
{
	y[step] = tinyml_output_s8(s1, c->multiplier, c->shift, &c->to);
	y[0] = tinyml_output_s8(s0, c->multiplier, c->shift, &c->to);
}

/* 3x3 kernels; with a stride of 1 (`neighbours`), two adjacent windows share elements. */
static inline __attribute__((always_inline)) void depthwise_conv_s8_plane_3x3_any_stride(
	const struct tinyml_window *window, const struct channel *channel,
	const struct tinyml_plane *plane, int8_t *first, bool neighbours)
{
	const struct channel c = *channel;
	const int32_t width = plane->width, step = plane->y_step, stride = window->stride_w;
	const int8_t *row = plane->at, *w = c.weights;

	for (int32_t rows = window->out_h; rows > 0; rows--, first += plane->y_line) {
		const int8_t *x = row;
		int8_t *y = first;

		for (int32_t left = window->out_w; left > 0; left -= 2) {
			int32_t s0 = c.bias, s1 = s0;

			if (left ==
			    1) { /* compute a last odd output together with the one before it */
				x -= stride;
				y -= step;
			}
#define ROW(taps)                                                                                  \
	do {                                                                                       \
		const int32_t w0 = (taps)[0], w1 = (taps)[1], w2 = (taps)[2];                      \
		int32_t value = at[0];                                                             \
		s0 += value * w0;                                                                  \
		value = at[1];                                                                     \
		s0 += value * w1;                                                                  \
		if (neighbours) {                                                                  \
			s1 += value * w0;                                                          \
			value = at[2];                                                             \
			s0 += value * w2;                                                          \
			s1 += value * w1;                                                          \
			s1 += at[3] * w2;                                                          \
		} else {                                                                           \
			s0 += at[2] * w2;                                                          \
			s1 += at[stride] * w0;                                                     \
			s1 += at[stride + 1] * w1;                                                 \
			s1 += at[stride + 2] * w2;                                                 \
		}                                                                                  \
		at += width;                                                                       \
		HIDE_ORIGIN(at);                                                                   \
	} while (0)
			const int8_t *at = x;
			ROW(w);
			ROW(w + 3);
			ROW(w + 6);
#undef ROW
			depthwise_conv_s8_write_two(&c, s0, s1, y, step);
			x += 2 * stride;
			y += 2 * step;
		}
		row += window->stride_h * width;
	}
}

/* Kernels of any size. */
static inline __attribute__((always_inline)) void
depthwise_conv_s8_plane_any_kernel(const struct tinyml_window *window,
				   const struct channel *channel, const struct tinyml_plane *plane,
				   int8_t *first)
{
	const struct channel c = *channel;
	const bool several = window->out_w > 1; /* otherwise an output is paired with itself */
	const int32_t gap = several ? window->stride_w : 0, step = several ? plane->y_step : 0;
	const int32_t kernel_w = window->kernel_w, dilation = window->dilation_w;
	const int32_t down = window->dilation_h * plane->width;
	const int8_t *row = plane->at;

	for (int32_t rows = window->out_h; rows > 0; rows--, first += plane->y_line) {
		const int8_t *from = row;
		int8_t *y = first;

		for (int32_t left = window->out_w; left > 0; left -= 2) {
			const int8_t *w = c.weights, *x;
			int32_t s0 = c.bias, s1 = s0;

			if (left == 1) {
				from -= gap;
				y -= step;
			}
			x = from;
			for (int32_t ky = window->kernel_h; ky > 0; ky--, x += down) {
				const int8_t *at = x;

				for (const int8_t *end = w + kernel_w; w < end; at += dilation) {
					const int32_t weight = *w++ - c.weight_zero;

					s0 += at[0] * weight;
					s1 += at[gap] * weight;
				}
			}
			depthwise_conv_s8_write_two(&c, s0, s1, y, step);
			from += 2 * gap;
			y += 2 * step;
		}
		row += window->stride_h * plane->width;
	}
}

struct tinyml_depthwise {
	void (*convolve_plane)(const struct tinyml_window *w, const struct channel *c,
			       const struct tinyml_plane *plane, int8_t *y);
};

/* One function each, so that only what a model uses is linked. */
#define LOOP(name, call)                                                                           \
	__attribute__((noinline)) static void depthwise_conv_s8_plane_##name(                      \
		const struct tinyml_window *w, const struct channel *c,                            \
		const struct tinyml_plane *plane, int8_t *y)                                       \
	{                                                                                          \
		call;                                                                              \
	}                                                                                          \
	const struct tinyml_depthwise tinyml_depthwise_##name = {depthwise_conv_s8_plane_##name};
LOOP(3x3, depthwise_conv_s8_plane_3x3_any_stride(w, c, plane, y, true))
LOOP(3x3_strided, depthwise_conv_s8_plane_3x3_any_stride(w, c, plane, y, false))
LOOP(any, depthwise_conv_s8_plane_any_kernel(w, c, plane, y))
#undef LOOP

static inline __attribute__((always_inline)) void
depthwise_conv_s8_convolve(const struct tinyml_depthwise_conv_s8 *p, const int8_t *x, int8_t *y,
			   void *scratch, const struct tinyml_depthwise *loop, bool nibbles)
{
	const struct tinyml_window *w = &p->window;
	const int32_t multiple = w->out_c / w->in_c;
	const int32_t size = w->kernel_h * w->kernel_w;
	struct channel c = {
		.weight_zero = p->weight_zero,
		.to = tinyml_output(p->round_once, p->out_zero, p->out_min, p->out_max),
	};

	for (int32_t n = 0; n < w->batches; n++) {
		const struct tinyml_plane plane = tinyml_plane(p, scratch);
		const int8_t *weights = p->weights;

		for (int32_t i = 0; i < w->out_c; i++) {
			int8_t taps[TINYML_NIBBLE_BYTES];

			if (nibbles) {
				tinyml_unpack_nibbles(taps, weights, size);
				weights += tinyml_nibble_bytes(size);
				c.weights = taps;
			} else {
				c.weights = weights;
				weights += size;
			}
			if (multiple == 1 || i % multiple == 0) {
				tinyml_plane_fill(&plane, w, &x[i / multiple]);
			}
			c.bias = p->bias[i];
			c.multiplier = p->multiplier[i];
			c.shift = p->shift[i];
			loop->convolve_plane(w, &c, &plane, &y[i]);
		}
		x += w->in_h * w->in_w * w->in_c;
		y += w->out_h * w->out_w * w->out_c;
	}
}

void tinyml_depthwise_conv_s8(const struct tinyml_depthwise_conv_s8 *p, const int8_t *x, int8_t *y,
			      void *scratch, const struct tinyml_depthwise *loop)
{
	depthwise_conv_s8_convolve(p, x, y, scratch, loop, false);
}

void tinyml_depthwise_nibbles_s8(const struct tinyml_depthwise_conv_s8 *p, const int8_t *x,
				 int8_t *y, void *scratch, const struct tinyml_depthwise *loop)
{
	depthwise_conv_s8_convolve(p, x, y, scratch, loop, true);
}
