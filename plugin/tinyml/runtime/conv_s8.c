/* SPDX-License-Identifier: Apache-2.0 */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <tinyml/conv.h>

#include "gemm_s8.h"
#include "output_s8.h"

/* One group of a convolution: which channels it reads, which filters it applies. */
struct group {
	int32_t first_in;  /* first input channel */
	int32_t in_c;      /* input channels */
	int32_t first_out; /* first output channel */
	int32_t out_c;     /* output channels */
	int32_t column;    /* elements of a column: kernel_h * kernel_w * in_c */
};

/* Two windows, whose columns meet the filters together. */
struct pair {
	const int8_t *column[2];
	int8_t *y[2];
	int32_t count;
};

/* Copy the window at (oy, ox) into a column; what lies outside the input is its zero point. */
static void gather(const struct tinyml_conv_s8 *p, const struct group *g, const int8_t *x,
		   struct tinyml_span rows, struct tinyml_span cols, int8_t *column)
{
	const struct tinyml_window *w = &p->window;
	const int32_t row_bytes = w->kernel_w * g->in_c;
	const bool whole_rows = cols.first == 0 && cols.end == w->kernel_w && w->dilation_w == 1 &&
				g->in_c == w->in_c;

	for (int32_t ky = 0; ky < w->kernel_h; ky++, column += row_bytes) {
		const int8_t *row;

		if (ky < rows.first || ky >= rows.end) {
			memset(column, p->in_zero, (size_t)row_bytes);
			continue;
		}
		row = &x[((rows.start + ky * w->dilation_h) * w->in_w + cols.start) * w->in_c +
			 g->first_in];
		if (whole_rows) {
			memcpy(column, row, (size_t)row_bytes);
			continue;
		}
		for (int32_t kx = 0; kx < w->kernel_w; kx++) {
			int8_t *to = &column[kx * g->in_c];

			if (kx < cols.first || kx >= cols.end) {
				memset(to, p->in_zero, (size_t)g->in_c);
			} else {
				memcpy(to, &row[kx * w->dilation_w * w->in_c], (size_t)g->in_c);
			}
		}
	}
}

static int32_t sum_of(const int8_t *column, int32_t count)
{
	int32_t sum = 0;

	for (int32_t k = 0; k < count; k++) {
		sum += column[k];
	}
	return sum;
}

/* All filters of a group at the two positions of a pair. */
static void filters(const struct tinyml_conv_s8 *p, const struct group *g, struct pair *pair)
{
	/* A single last window is its own partner. Local copies: what is written to y could be *p
	 * for all that the compiler knows. */
	const struct tinyml_conv_s8 q = *p;
	const struct tinyml_output to =
		tinyml_output(q.round_once, q.out_zero, q.out_min, q.out_max);
	const int32_t last = pair->count - 1, column = g->column;
	const int8_t *c0 = pair->column[0], *c1 = pair->column[last];
	const int32_t zero0 = q.weight_zero != 0 ? q.weight_zero * sum_of(c0, column) : 0;
	const int32_t zero1 = q.weight_zero != 0 ? q.weight_zero * sum_of(c1, column) : 0;
	const int8_t *w = &q.weights[g->first_out * column];
	const int32_t end = g->first_out + g->out_c;
	int8_t *y0 = pair->y[0], *y1 = pair->y[last];

	for (int32_t oc = g->first_out; oc < end; oc += 2) {
		/* A last odd filter meets itself: the second result is the first one again. */
		const int32_t next = oc + 1 < end ? 1 : 0;
		const int32_t b0 = q.bias[oc], b1 = q.bias[oc + next];
		const int32_t m0 = q.multiplier[oc], m1 = q.multiplier[oc + next];
		const int32_t e0 = q.shift[oc], e1 = q.shift[oc + next];
		int32_t acc[4] = {b0 - zero0, b0 - zero1, b1 - zero0, b1 - zero1};

		tinyml_dot_2x2(w, &w[next * column], c0, c1, column, acc);
		w += 2 * column;
		y0[oc] = tinyml_output_s8(acc[0], m0, e0, &to);
		y1[oc] = tinyml_output_s8(acc[1], m0, e0, &to);
		y0[oc + next] = tinyml_output_s8(acc[2], m1, e1, &to);
		y1[oc + next] = tinyml_output_s8(acc[3], m1, e1, &to);
	}
	pair->count = 0;
}

static void convolve(const struct tinyml_conv_s8 *p, const struct group *g, const int8_t *x,
		     int8_t *y, void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t column_bytes = (g->column + 3) & ~3;
	int8_t *bytes = scratch;
	struct pair pair = {.count = 0};

	for (int32_t row = 0; row < w->out_h; row++) {
		const int32_t oy = p->from_the_end ? w->out_h - 1 - row : row;
		const struct tinyml_span rows = tinyml_span(oy, w->stride_h, w->pad_top,
							    w->kernel_h, w->dilation_h, w->in_h);

		for (int32_t col = 0; col < w->out_w; col++) {
			const int32_t ox = p->from_the_end ? w->out_w - 1 - col : col;
			const struct tinyml_span cols = tinyml_span(
				ox, w->stride_w, w->pad_left, w->kernel_w, w->dilation_w, w->in_w);
			const int32_t i = pair.count++;
			int8_t *column = &bytes[i * column_bytes];

			/* A copy even where the input could be read in place: outputs of a 1x1
			 * convolution may then be written over its inputs. */
			gather(p, g, x, rows, cols, column);
			pair.column[i] = column;
			pair.y[i] = &y[(oy * w->out_w + ox) * w->out_c];
			if (pair.count == 2) {
				filters(p, g, &pair);
			}
		}
	}
	if (pair.count == 1) {
		filters(p, g, &pair);
	}
}

void tinyml_conv_s8(const struct tinyml_conv_s8 *p, const int8_t *x, int8_t *y, void *scratch)
{
	const struct tinyml_window *w = &p->window;
	struct group g = {.in_c = w->in_c / p->groups, .out_c = w->out_c / p->groups};

	g.column = w->kernel_h * w->kernel_w * g.in_c;
	for (int32_t item = 0; item < w->batches; item++) {
		const int32_t n = p->from_the_end ? w->batches - 1 - item : item;

		for (int32_t i = 0; i < p->groups; i++) {
			g.first_in = i * g.in_c;
			g.first_out = i * g.out_c;
			convolve(p, &g, &x[n * w->in_h * w->in_w * w->in_c],
				 &y[n * w->out_h * w->out_w * w->out_c], scratch);
		}
	}
}
