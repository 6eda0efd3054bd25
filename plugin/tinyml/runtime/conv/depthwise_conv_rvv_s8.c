/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise convolutions with RISC-V's vectors, as many channels at a time as fit. */

#include <tinyml/depthwise_conv.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_RVV

#include "../weighted/rvv_s8.h"
#include "ring_s8.h"

/* Rows of the input that follow one another, `bytes` apart; after the last one in memory comes the
 * first, if they are in a ring. */
struct rows {
	const int8_t *first; /* of a window */
	int32_t bytes;
	const int8_t *end;
	int32_t ring_bytes;
};

/* One row of outputs. */
static void depthwise_conv_rvv_convolve_row(const struct tinyml_window *w,
					    const struct tinyml_rvv_filters *f,
					    const struct rows *rows, int8_t *y)
{
	const size_t channels = (size_t)w->in_c;
	const int32_t step = w->dilation_w * w->in_c, row_step = w->dilation_h * rows->bytes;

	for (int32_t ox = 0; ox < w->out_w; ox++, y += channels) {
		const int32_t left = ox * w->stride_w * w->in_c;

		for (size_t done = 0, vl; done < channels; done += vl) {
			const int8_t *row = rows->first, *weights = &f->weights[done];
			vint32m8_t sums;

			vl = __riscv_vsetvl_e32m8(channels - done);
			sums = __riscv_vle32_v_i32m8(&f->bias[done], vl);
			for (int32_t ky = 0; ky < w->kernel_h; ky++, row += row_step) {
				if (row >= rows->end) {
					row -= rows->ring_bytes;
				}
				const int8_t *x = &row[left + (int32_t)done];

				for (int32_t kx = w->kernel_w; kx > 0; kx--) {
					const vint8m2_t a = __riscv_vle8_v_i8m2(x, vl);
					const vint8m2_t b = __riscv_vle8_v_i8m2(weights, vl);

					sums = __riscv_vwmacc(sums, __riscv_vsext_vf2(a, vl),
							      __riscv_vsext_vf2(b, vl), vl);
					x += step;
					weights += channels;
				}
			}
			tinyml_rvv_store(f, done, sums, &y[done], vl);
		}
	}
}

void tinyml_depthwise_conv_rvv_s8(const struct tinyml_conv_rvv_s8 *p, const int8_t *x, int8_t *y,
				  void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t in_row = w->in_w * w->in_c, in_bytes = w->in_h * in_row;
	const struct tinyml_rvv_filters filters =
		TINYML_RVV_FILTERS(p, w->kernel_h * w->kernel_w, w->in_c);

	TINYML_ASSERT(w->in_c == w->out_c);
	TINYML_ASSERT(p->out_min <= p->out_max);
	for (int32_t n = 0; n < w->batches; n++, x += in_bytes) {
		struct tinyml_ring ring = tinyml_ring(w, scratch);
		struct rows rows = {.bytes = in_row, .end = x + in_bytes};

		if (scratch != NULL) {
			rows.bytes = ring.row_bytes;
			rows.ring_bytes = ring.count * ring.row_bytes;
			rows.end = ring.rows + rows.ring_bytes;
		}
		for (int32_t oy = 0; oy < w->out_h; oy++, y += w->out_w * w->out_c) {
			const int32_t top = oy * w->stride_h - w->pad_top;

			if (scratch != NULL) {
				tinyml_ring_fill(&ring, w, (int8_t)p->in_zero, x, top + ring.count);
				rows.first = tinyml_ring_row(&ring, top);
			} else {
				rows.first = &x[top * in_row];
			}
			depthwise_conv_rvv_convolve_row(w, &filters, &rows, y);
		}
	}
}

#endif /* TINYML_CORE_RVV */
