/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise convolutions, channel by channel, two outputs of a row at a time. */

#include <stdbool.h>

#include <tinyml/depthwise_conv.h>

#include "../weighted/output_s8.h"
#include "plane_s8.h"

/* What is the same for all outputs of a channel. */
struct channel {
	const int8_t *weights;
	int32_t weight_zero;
	int32_t bias;
	int32_t multiplier;
	int32_t shift;
	struct tinyml_output to;
};

/* Make the compiler forget how a pointer came to be: it would keep sums of it in memory. */
#define KEEP(pointer) __asm__("" : "+r"(pointer))

/* Write two outputs, the second first: it may be the same place. */
static inline void write_two(const struct channel *c, int32_t s0, int32_t s1, int8_t *y,
			     int32_t step)
{
	y[step] = tinyml_output_s8(s1, c->multiplier, c->shift, &c->to);
	y[0] = tinyml_output_s8(s0, c->multiplier, c->shift, &c->to);
}

/* A 3x3 kernel, whose windows overlap if they are neighbours. */
static inline __attribute__((always_inline)) void plane_3x3(const struct tinyml_window *window,
							    const struct channel *channel,
							    const struct tinyml_plane *plane,
							    int8_t *first, bool neighbours)
{
	const struct channel c = *channel;
	const int32_t width = plane->width, step = plane->y_step, stride = window->stride_w;
	const int8_t *row = plane->at, *w = c.weights;

	for (int32_t rows = window->out_h; rows > 0; rows--, first += plane->y_line) {
		const int8_t *x = row;
		int8_t *y = first;

		for (int32_t left = window->out_w; left > 0; left -= 2) {
			int32_t s0 = c.bias, s1 = s0;

			if (left == 1) { /* a last odd output is computed with the one before it */
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
		KEEP(at);                                                                          \
	} while (0)
			const int8_t *at = x;
			ROW(w);
			ROW(w + 3);
			ROW(w + 6);
#undef ROW
			write_two(&c, s0, s1, y, step);
			x += 2 * stride;
			y += 2 * step;
		}
		row += window->stride_h * width;
	}
}

/* Any kernel. */
static inline __attribute__((always_inline)) void plane_any(const struct tinyml_window *window,
							    const struct channel *channel,
							    const struct tinyml_plane *plane,
							    int8_t *first)
{
	const struct channel c = *channel;
	const bool several = window->out_w > 1; /* else an output is its own neighbour */
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
			write_two(&c, s0, s1, y, step);
			from += 2 * gap;
			y += 2 * step;
		}
		row += window->stride_h * plane->width;
	}
}

struct tinyml_depthwise {
	void (*walk)(const struct tinyml_window *w, const struct channel *c,
		     const struct tinyml_plane *plane, int8_t *y);
};

/* One function each: only what a model uses is linked. */
#define WAY(name, call)                                                                            \
	__attribute__((noinline)) static void walk_##name(                                         \
		const struct tinyml_window *w, const struct channel *c,                            \
		const struct tinyml_plane *plane, int8_t *y)                                       \
	{                                                                                          \
		call;                                                                              \
	}                                                                                          \
	const struct tinyml_depthwise tinyml_depthwise_##name = {walk_##name};
WAY(3x3, plane_3x3(w, c, plane, y, true))
WAY(3x3_strided, plane_3x3(w, c, plane, y, false))
WAY(any, plane_any(w, c, plane, y))
#undef WAY

void tinyml_depthwise_conv_s8(const struct tinyml_depthwise_conv_s8 *p, const int8_t *x, int8_t *y,
			      void *scratch, const struct tinyml_depthwise *way)
{
	const struct tinyml_window *w = &p->window;
	const int32_t multiple = w->out_c / w->in_c;
	struct channel c = {
		.weight_zero = p->weight_zero,
		.to = tinyml_output(p->round_once, p->out_zero, p->out_min, p->out_max),
	};

	for (int32_t n = 0; n < w->batches; n++) {
		const struct tinyml_plane plane = tinyml_plane(p, scratch);

		c.weights = p->weights;
		for (int32_t i = 0; i < w->out_c; i++, c.weights += w->kernel_h * w->kernel_w) {
			if (multiple == 1 || i % multiple == 0) {
				tinyml_plane_fill(&plane, w, &x[i / multiple]);
			}
			c.bias = p->bias[i];
			c.multiplier = p->multiplier[i];
			c.shift = p->shift[i];
			way->walk(w, &c, &plane, &y[i]);
		}
		x += w->in_h * w->in_w * w->in_c;
		y += w->out_h * w->out_w * w->out_c;
	}
}
