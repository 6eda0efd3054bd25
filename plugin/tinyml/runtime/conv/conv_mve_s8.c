/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions with Helium: three windows by two filters at a time. VMLADAV requires its sum in an
 * even register, of which six are free: three by two is the largest tile that needs no spilling.
 */

#include <tinyml/conv.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "../weighted/mve_s8.h"

#define WINDOWS 3

/* Inlined into one another, these functions would run out of registers. */
#define NOT_INLINED __attribute__((noinline)) static

/* Columns: windows of the input, one after the other in the scratch memory, each padded with zeros
 * to whole vectors. So filters need no padding: whatever is read past their end is multiplied by
 * zero.
 */
struct columns {
	int8_t *first;
	int32_t stride;  /* from one to the next, in bytes */
	int32_t vectors; /* in each */
	int32_t spare;   /* zeros at the end of each */
	int32_t count;   /* of columns in use */
};

/* Copy a dilated window, or one that extends past the input, where the zero point is used. */
NOT_INLINED void gather_piecewise(const struct tinyml_conv_mve_s8 *p, const int8_t *x, int32_t oy,
				  int32_t ox, int8_t *column)
{
	const struct tinyml_window *w = &p->window;
	const struct tinyml_span rows =
		tinyml_span(oy, w->stride_h, w->pad_top, w->kernel_h, w->dilation_h, w->in_h);
	const struct tinyml_span cols =
		tinyml_span(ox, w->stride_w, w->pad_left, w->kernel_w, w->dilation_w, w->in_w);
	const int32_t in_c = w->in_c, row_bytes = w->kernel_w * in_c;
	/* Elements that are adjacent in the column and in the input. */
	const int32_t run = w->dilation_w == 1 ? cols.end - cols.first : 1;

	tinyml_fill(column, (int8_t)p->in_zero, w->kernel_h * row_bytes);
	for (int32_t ky = rows.first; ky < rows.end; ky++) {
		const int32_t row = rows.start + ky * w->dilation_h;

		for (int32_t kx = cols.first; kx < cols.end; kx += run) {
			const int32_t at = row * w->in_w + cols.start + kx * w->dilation_w;

			tinyml_copy(&column[ky * row_bytes + kx * in_c], &x[at * in_c], run * in_c);
		}
	}
}

/* Copy the window of an output into a column. */
NOT_INLINED void gather_window(const struct tinyml_conv_mve_s8 *p, const int8_t *x, int32_t oy,
			       int32_t ox, int8_t *column)
{
	const struct tinyml_window *w = &p->window;
	const int32_t top = oy * w->stride_h - w->pad_top, left = ox * w->stride_w - w->pad_left;
	const int32_t height = w->kernel_h, row_bytes = w->kernel_w * w->in_c;
	const int32_t in_bytes = w->in_w * w->in_c;

	if (w->dilation_h != 1 || w->dilation_w != 1 || top < 0 || left < 0 ||
	    top + height > w->in_h || left + w->kernel_w > w->in_w) {
		gather_piecewise(p, x, oy, ox, column);
		return;
	}
	x += top * in_bytes + left * w->in_c;
	for (int32_t ky = 0; ky < height; ky++, x += in_bytes, column += row_bytes) {
		tinyml_copy(column, x, row_bytes);
	}
}

/* Two filters at three windows: sums[4 * window + filter]. Returns the address of the next filters.
 *
 * In assembly, because compilers spend more instructions on moving its ten registers than on the
 * loop.
 */
static inline const int8_t *dot_3x2(const int8_t *w, const struct columns *columns, int32_t *sums)
{
	const int8_t *c0 = columns->first, *c1 = c0 + columns->stride, *c2 = c1 + columns->stride;
	int32_t a0 = 0, a1 = 0, a2 = 0, b0 = 0, b1 = 0, b2 = 0;

	__asm__("dls lr, %[vectors]\n"
		"1:\n\t"
		"vldrb.8 q0, [%[w], #16]\n\t"
		"vldrb.8 q1, [%[c0]], #16\n\t"
		"vmladava.s8 %[b0], q0, q1\n\t"
		"vldrb.8 q2, [%[c1]], #16\n\t"
		"vmladava.s8 %[b1], q0, q2\n\t"
		"vldrb.8 q3, [%[c2]], #16\n\t"
		"vmladava.s8 %[b2], q0, q3\n\t"
		"vldrb.8 q0, [%[w]], #32\n\t"
		"vmladava.s8 %[a0], q0, q1\n\t"
		"vmladava.s8 %[a1], q0, q2\n\t"
		"vmladava.s8 %[a2], q0, q3\n\t"
		"le lr, 1b"
		: [w] "+r"(w), [c0] "+r"(c0), [c1] "+r"(c1), [c2] "+r"(c2), [a0] "+Te"(a0),
		  [a1] "+Te"(a1), [a2] "+Te"(a2), [b0] "+Te"(b0), [b1] "+Te"(b1), [b2] "+Te"(b2)
		: [vectors] "r"(columns->vectors)
		: "lr", "q0", "q1", "q2", "q3", "memory");
	sums[0] = a0;
	sums[1] = b0;
	sums[4] = a1;
	sums[5] = b1;
	sums[8] = a2;
	sums[9] = b2;
	return w - columns->spare;
}

/* Apply all filters to the windows in the columns. Outputs of adjacent windows are `step` bytes
 * apart.
 */
static inline __attribute__((always_inline)) void apply_filters(const struct tinyml_conv_mve_s8 *p,
								struct columns *columns, int8_t *y,
								int32_t step, bool once)
{
	const struct tinyml_limits to = {p->out_zero, p->out_min, p->out_max};
	const int32_t *bias = p->bias, *multiplier = p->multiplier;
	const int8_t *w = p->weights, *shift = p->shift;
	const int32_t count = columns->count;
	int32_t sums[4 * WINDOWS];

	for (int32_t left = p->window.out_c; left > 0; left -= 4, y += 4) {
		int32x4_t b, m, s, q0, q1, q2;

		w = dot_3x2(w, columns, sums);
		if (left > 2) {
			w = dot_3x2(w, columns, &sums[2]);
		}
		b = vldrwq_s32(bias);
		m = vldrwq_s32(multiplier);
		s = vldrbq_s32(shift);
		bias += 4;
		multiplier += 4;
		shift += 4;
		q0 = tinyml_rescale_4(vaddq_s32(vldrwq_s32(sums), b), m, s, once);
		q1 = tinyml_rescale_4(vaddq_s32(vldrwq_s32(&sums[4]), b), m, s, once);
		q2 = tinyml_rescale_4(vaddq_s32(vldrwq_s32(&sums[8]), b), m, s, once);
		q0 = tinyml_limit_4(q0, &to);
		q1 = tinyml_limit_4(q1, &to);
		q2 = tinyml_limit_4(q2, &to);
		if (left >= 4 && count == WINDOWS) {
			vstrbq_s32(y, q0);
			vstrbq_s32(&y[step], q1);
			vstrbq_s32(&y[2 * step], q2);
		} else {
			const mve_pred16_t some = vctp32q((uint32_t)left);

			vstrbq_p_s32(y, q0, some);
			if (count > 1) {
				vstrbq_p_s32(&y[step], q1, some);
			}
			if (count > 2) {
				vstrbq_p_s32(&y[2 * step], q2, some);
			}
		}
	}
}

NOT_INLINED void apply_filters_once(const struct tinyml_conv_mve_s8 *p, struct columns *columns,
				    int8_t *y, int32_t step)
{
	apply_filters(p, columns, y, step, true);
}

NOT_INLINED void apply_filters_twice(const struct tinyml_conv_mve_s8 *p, struct columns *columns,
				     int8_t *y, int32_t step)
{
	apply_filters(p, columns, y, step, false);
}

void tinyml_conv_mve_s8(const struct tinyml_conv_mve_s8 *p, const int8_t *x, int8_t *y,
			void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t column = w->kernel_h * w->kernel_w * w->in_c;
	const int32_t rows = w->batches * w->out_h;
	const int32_t step = p->from_the_end ? -w->out_c : w->out_c;
	struct columns columns = {.first = scratch};
	int32_t left = rows * w->out_w;

	TINYML_ASSERT(TINYML_ALIGNED(scratch, 4) && p->out_min <= p->out_max);
	columns.vectors = (column + TINYML_LANES - 1) / TINYML_LANES;
	columns.stride = columns.vectors * TINYML_LANES;
	columns.spare = columns.stride - column;
	tinyml_fill(scratch, 0, WINDOWS * columns.stride);
	y += p->from_the_end ? (left - 1) * w->out_c : 0;
	for (int32_t i = 0; i < rows; i++) {
		const int32_t row = p->from_the_end ? rows - 1 - i : i;
		const int32_t item = row / w->out_h, oy = row - item * w->out_h;
		const int8_t *from = &x[item * w->in_h * w->in_w * w->in_c];

		for (int32_t j = 0; j < w->out_w; j++) {
			/* Always a copy, so that outputs of a 1x1 convolution can be written over
			 * its inputs. */
			gather_window(p, from, oy, p->from_the_end ? w->out_w - 1 - j : j,
				      &columns.first[columns.count++ * columns.stride]);
			left--;
			if (columns.count == WINDOWS || left == 0) {
				if (p->round_once) {
					apply_filters_once(p, &columns, y, step);
				} else {
					apply_filters_twice(p, &columns, y, step);
				}
				y += columns.count * step;
				columns.count = 0;
			}
		}
	}
}

#endif /* TINYML_CORE_MVE */
