/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions with RISC-V's vectors: four windows at a time, copied into columns. */

#include <tinyml/conv.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_RVV

#include "../weighted/rvv_nibbles_s8.h"
#include "../weighted/rvv_s8.h"

/* Copy the window of one position; elements outside the input are its zero point. */
static void conv_rvv_gather_window(const struct tinyml_conv_rvv_s8 *p, const int8_t *x,
				   int32_t position, int8_t *column)
{
	const struct tinyml_window *w = &p->window;
	const int32_t oy = position / w->out_w, ox = position - oy * w->out_w;
	const struct tinyml_span rows =
		tinyml_span(oy, w->stride_h, w->pad_top, w->kernel_h, w->dilation_h, w->in_h);
	const struct tinyml_span cols =
		tinyml_span(ox, w->stride_w, w->pad_left, w->kernel_w, w->dilation_w, w->in_w);
	const int32_t in_c = w->in_c, row_bytes = w->kernel_w * in_c;
	/* Taps that are adjacent in the column and in the input. */
	const int32_t run = w->dilation_w == 1 ? cols.end - cols.first : 1;

	if (rows.end - rows.first != w->kernel_h || cols.end - cols.first != w->kernel_w) {
		tinyml_fill(column, (int8_t)p->in_zero, w->kernel_h * row_bytes);
	}
	for (int32_t ky = rows.first; ky < rows.end; ky++) {
		const int8_t *row =
			&x[((rows.start + ky * w->dilation_h) * w->in_w + cols.start) * in_c];

		for (int32_t kx = cols.first; kx < cols.end; kx += run) {
			tinyml_copy(&column[ky * row_bytes + kx * in_c],
				    &row[kx * w->dilation_w * in_c], run * in_c);
		}
	}
}

/* All positions of one batch item. */
static inline __attribute__((always_inline)) void
conv_rvv_convolve_item(const struct tinyml_conv_rvv_s8 *p, const struct tinyml_rvv_filters *filters,
		       const int8_t *x, int8_t *y, int8_t *columns, bool nibbles)
{
	const struct tinyml_window *w = &p->window;
	const int32_t positions = w->out_h * w->out_w, direction = p->from_the_end ? -1 : 1;
	const int32_t step = direction * w->out_c, first = p->from_the_end ? positions - 1 : 0;
	const int32_t elements = filters->elements;
	int32_t count = 0;

	y += first * w->out_c;
	for (int32_t done = 0; done < positions; done++) {
		conv_rvv_gather_window(p, x, first + direction * done,
				       &columns[count++ * elements]);
		if (count == TINYML_RVV_WINDOWS) {
			if (nibbles) {
				tinyml_rvv_apply_windows_nibbles(filters, columns, y, step);
			} else {
				tinyml_rvv_apply_windows(filters, columns, y, step);
			}
			y += TINYML_RVV_WINDOWS * step;
			count = 0;
		}
	}
	for (int32_t i = 0; i < count; i++, y += step) {
		if (nibbles) {
			tinyml_rvv_apply_nibbles(filters, &columns[i * elements], y);
		} else {
			tinyml_rvv_apply(filters, &columns[i * elements], y);
		}
	}
}

static inline __attribute__((always_inline)) void
conv_rvv_convolve(const struct tinyml_conv_rvv_s8 *p, const int8_t *x, int8_t *y, void *scratch,
		  bool nibbles)
{
	const struct tinyml_window *w = &p->window;
	const int32_t in_bytes = w->in_h * w->in_w * w->in_c;
	const int32_t out_bytes = w->out_h * w->out_w * w->out_c;
	const int32_t elements = w->kernel_h * w->kernel_w * w->in_c;
	const struct tinyml_rvv_filters filters = TINYML_RVV_FILTERS(p, elements, w->out_c);

	TINYML_ASSERT(p->out_min <= p->out_max);
	for (int32_t item = 0; item < w->batches; item++) {
		const int32_t n = p->from_the_end ? w->batches - 1 - item : item;

		conv_rvv_convolve_item(p, &filters, &x[n * in_bytes], &y[n * out_bytes], scratch,
				       nibbles);
	}
}

void tinyml_conv_rvv_s8(const struct tinyml_conv_rvv_s8 *p, const int8_t *x, int8_t *y,
			void *scratch)
{
	conv_rvv_convolve(p, x, y, scratch, false);
}

void tinyml_conv_nibbles_rvv_s8(const struct tinyml_conv_rvv_s8 *p, const int8_t *x, int8_t *y,
				void *scratch)
{
	conv_rvv_convolve(p, x, y, scratch, true);
}

#endif /* TINYML_CORE_RVV */
