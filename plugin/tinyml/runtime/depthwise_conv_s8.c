/* SPDX-License-Identifier: Apache-2.0 */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <tinyml/conv.h>

#include "output_s8.h"

/*
 * The rows that a row of output needs are copied into a ring of rows, with padding around them. So
 * no window meets a border, and the output may be written over the input.
 */
struct ring {
	int8_t *rows;
	int32_t count;     /* rows in the ring: what the kernel spans */
	int32_t row_bytes; /* of a row with its padding */
	int32_t next; /* first row of the input that is not in the ring yet (may be negative) */
};

static int8_t *ring_row(const struct ring *ring, int32_t row)
{
	/* Rows above the input have negative numbers, never more than there are in the ring. */
	return &ring->rows[(row + ring->count) % ring->count * ring->row_bytes];
}

/* Read rows of the input into the ring until it holds every row before `end`. */
static void ring_fill(struct ring *ring, const struct tinyml_conv_s8 *p, const int8_t *x,
		      int32_t end)
{
	const struct tinyml_window *w = &p->window;
	const int32_t in_bytes = w->in_w * w->in_c;

	for (; ring->next < end; ring->next++) {
		int8_t *row = ring_row(ring, ring->next);

		memset(row, p->in_zero, (size_t)ring->row_bytes);
		if (ring->next >= 0 && ring->next < w->in_h) {
			memcpy(&row[w->pad_left * w->in_c], &x[ring->next * in_bytes],
			       (size_t)in_bytes);
		}
	}
}

/* Windows at one or two neighbouring positions: 3x3, one filter per channel. Functions of their
 * own, because inlined into one another they need more registers than there are.
 */
__attribute__((noinline)) static void one_3x3(const struct tinyml_conv_s8 *p,
					      const struct tinyml_output *to,
					      const int8_t *const at[3], int8_t *y)
{
	const int32_t channels = p->window.in_c;
	const int32_t *bias = p->bias, *multiplier = p->multiplier;
	const int8_t *shift = p->shift, *w = p->weights, *r0 = at[0], *r1 = at[1], *r2 = at[2];
	const struct tinyml_output out = *to;

	for (const int8_t *end = r0 + channels; r0 < end; r0++, r1++, r2++, w += 9) {
		int32_t acc = *bias++;

		acc += r0[0] * w[0] + r0[channels] * w[1] + r0[2 * channels] * w[2];
		acc += r1[0] * w[3] + r1[channels] * w[4] + r1[2 * channels] * w[5];
		acc += r2[0] * w[6] + r2[channels] * w[7] + r2[2 * channels] * w[8];
		*y++ = tinyml_output_s8(acc, *multiplier++, *shift++, &out);
	}
}

__attribute__((noinline)) static void two_3x3(const struct tinyml_conv_s8 *p,
					      const struct tinyml_output *to,
					      const int8_t *const at[3], int8_t *y)
{
	const int32_t channels = p->window.in_c;
	const int32_t *bias = p->bias, *multiplier = p->multiplier;
	const int8_t *shift = p->shift, *w = p->weights, *r0 = at[0], *r1 = at[1], *r2 = at[2];
	const struct tinyml_output out = *to;

	for (const int8_t *end = r0 + channels; r0 < end; r0++, r1++, r2++, w += 9, y++) {
		int32_t a = *bias++, b = a, multiply, shift_by;

#define TINYML_ROW(row, first)                                                                     \
	do {                                                                                       \
		const int32_t w0 = w[first], w1 = w[(first) + 1], w2 = w[(first) + 2];             \
		const int32_t x1 = (row)[channels], x2 = (row)[2 * channels];                      \
		a += (row)[0] * w0 + x1 * w1 + x2 * w2;                                            \
		b += x1 * w0 + x2 * w1 + (row)[3 * channels] * w2;                                 \
	} while (0)
		TINYML_ROW(r0, 0);
		TINYML_ROW(r1, 3);
		TINYML_ROW(r2, 6);
#undef TINYML_ROW
		multiply = *multiplier++;
		shift_by = *shift++;
		y[0] = tinyml_output_s8(a, multiply, shift_by, &out);
		y[channels] = tinyml_output_s8(b, multiply, shift_by, &out);
	}
}

/* One row of output of a 3x3 kernel. */
static void row_3x3(const struct tinyml_conv_s8 *p, const struct ring *ring, int32_t top, int8_t *y)
{
	const struct tinyml_window *w = &p->window;
	const struct tinyml_output to =
		tinyml_output(p->round_once, p->out_zero, p->out_min, p->out_max);
	const int8_t *at[3] = {ring_row(ring, top), ring_row(ring, top + 1),
			       ring_row(ring, top + 2)};

	for (int32_t ox = 0, done; ox < w->out_w; ox += done) {
		done = w->stride_w == 1 && ox + 1 < w->out_w ? 2 : 1;
		if (done == 2) {
			two_3x3(p, &to, at, y);
		} else {
			one_3x3(p, &to, at, y);
		}
		for (int32_t i = 0; i < 3; i++) {
			at[i] += done * w->stride_w * w->in_c;
		}
		y += done * w->out_c;
	}
}

/* One row of output of any kernel, dilation, channel multiple and weight zero point. */
static void row_any(const struct tinyml_conv_s8 *p, const struct ring *ring, int32_t top, int8_t *y)
{
	const struct tinyml_window *w = &p->window;
	const struct tinyml_output to =
		tinyml_output(p->round_once, p->out_zero, p->out_min, p->out_max);
	const int32_t multiple = w->out_c / w->in_c, step = w->dilation_w * w->in_c;
	const int32_t kernel_w = w->kernel_w, weight_zero = p->weight_zero;

	for (int32_t ox = 0; ox < w->out_w; ox++) {
		const int8_t *k = p->weights;

		for (int32_t oc = 0; oc < w->out_c; oc++) {
			const int32_t at = ox * w->stride_w * w->in_c + oc / multiple;
			int32_t acc = p->bias[oc];

			for (int32_t ky = 0; ky < w->kernel_h; ky++) {
				const int8_t *in = &ring_row(ring, top + ky * w->dilation_h)[at];

				for (int32_t kx = 0; kx < kernel_w; kx++, in += step) {
					acc += *in * (*k++ - weight_zero);
				}
			}
			*y++ = tinyml_output_s8(acc, p->multiplier[oc], p->shift[oc], &to);
		}
	}
}

void tinyml_depthwise_conv_s8(const struct tinyml_conv_s8 *p, const int8_t *x, int8_t *y,
			      void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const bool usual = w->kernel_h == 3 && w->kernel_w == 3 && w->dilation_h == 1 &&
			   w->dilation_w == 1 && w->in_c == w->out_c && p->weight_zero == 0;
	const int32_t reach = (w->kernel_w - 1) * w->dilation_w + (w->out_w - 1) * w->stride_w + 1;
	const int32_t given = w->pad_left + w->in_w;

	for (int32_t n = 0; n < w->batches; n++) {
		struct ring ring = {
			.rows = scratch,
			.count = (w->kernel_h - 1) * w->dilation_h + 1,
			.row_bytes = (reach > given ? reach : given) * w->in_c,
			.next = -w->pad_top,
		};

		for (int32_t oy = 0; oy < w->out_h; oy++, y += w->out_w * w->out_c) {
			const int32_t top = oy * w->stride_h - w->pad_top;

			ring_fill(&ring, p, x, top + ring.count);
			if (usual) {
				row_3x3(p, &ring, top, y);
			} else {
				row_any(p, &ring, top, y);
			}
		}
		x += w->in_h * w->in_w * w->in_c;
	}
}
