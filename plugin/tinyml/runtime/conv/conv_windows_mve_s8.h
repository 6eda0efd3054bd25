/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * For conv_mve_s8.c: windows of the input as columns of vectors, four windows beside one another.
 */

#ifndef TINYML_CONV_WINDOWS_MVE_S8_H_
#define TINYML_CONV_WINDOWS_MVE_S8_H_

#include <stdbool.h>
#include <stdint.h>

#include <tinyml/conv.h>

#include "../weighted/mve_s8.h"

#define WINDOWS 4

/* Inlined into one another, these functions would run out of registers. */
#define NOT_INLINED __attribute__((noinline)) static

/* Columns are windows of the input, padded with zeros to whole vectors. So filters need no padding:
 * whatever is read past their end is multiplied by zero. The vectors of four columns take turns in
 * the scratch memory, so that one pointer reads all of them.
 */
#define NEXT_VECTOR (WINDOWS * TINYML_LANES)
_Static_assert(NEXT_VECTOR == 64 && WINDOWS == 4, "assembly steps over four vectors of 16 bytes");

/* As many bytes as fit into a vector. */
static inline void conv_windows_mve_put(int8_t *to, const int8_t *from, int32_t count)
{
	int32_t predicate;

	/* In assembly, because compilers move predicates to and fro. Not all of them know that name
	 * of the predicate's register, so its content is restored. */
	/* clang-format off */
	__asm__ volatile(
		"vmrs %[predicate], vpr\n\t"
		"vctp.8 %[count]\n\t"
		"vpstt\n\t"
		"vldrbt.8 q0, [%[from]]\n\t"
		"vstrbt.8 q0, [%[to]]\n\t"
		"vmsr vpr, %[predicate]"
		: [predicate] "=&r"(predicate)
		: [to] "r"(to), [from] "r"(from), [count] "r"(count)
		: "q0", "memory");
	/* clang-format on */
}

/* Write bytes of a window into its column, from element `at` on. */
static inline void conv_windows_mve_put_run(int8_t *column, int32_t at, const int8_t *from,
					    int32_t bytes)
{
	const int32_t lane = at & (TINYML_LANES - 1), room = TINYML_LANES - lane;

	column += (at - lane) * WINDOWS;
	if (lane != 0) {
		const int32_t some = bytes < room ? bytes : room;

		conv_windows_mve_put(column + lane, from, some);
		column += NEXT_VECTOR;
		from += some;
		bytes -= some;
	}
	/* clang-format off */
	__asm__ volatile(
		"wlstp.8 lr, %[bytes], 2f\n"
		"1:\n\t"
		"vldrb.8 q0, [%[from]], #16\n\t"
		"vstrb.8 q0, [%[column]], #64\n\t"
		"letp lr, 1b\n"
		"2:"
		: [column] "+r"(column), [from] "+r"(from)
		: [bytes] "r"(bytes)
		: "lr", "q0", "memory");
	/* clang-format on */
}

/* Copy a window element by element of the kernel: where it extends past the input, the zero point
 * is used. From one pixel of the input to the next there are `pixel` bytes.
 */
static inline __attribute__((always_inline)) void
conv_windows_mve_piecewise(const struct tinyml_conv_mve_s8 *p, const int8_t *x, int32_t pixel,
			   int32_t oy, int32_t ox, int8_t *column)
{
	const struct tinyml_window *w = &p->window;
	const struct tinyml_span rows =
		tinyml_span(oy, w->stride_h, w->pad_top, w->kernel_h, w->dilation_h, w->in_h);
	const struct tinyml_span cols =
		tinyml_span(ox, w->stride_w, w->pad_left, w->kernel_w, w->dilation_w, w->in_w);
	const int32_t in_c = w->in_c, row_bytes = w->kernel_w * in_c, in_bytes = w->in_w * pixel;
	/* Elements that are adjacent in the column and in the input. */
	const int32_t run = w->dilation_w * pixel == in_c ? cols.end - cols.first : 1;
	int8_t *at = column;

	for (int32_t left = w->kernel_h * row_bytes; left > 0; left -= TINYML_LANES) {
		vstrbq_p_s8(at, vdupq_n_s8((int8_t)p->in_zero), vctp8q((uint32_t)left));
		at += NEXT_VECTOR;
	}
	x += (rows.start + rows.first * w->dilation_h) * in_bytes + cols.start * pixel;
	for (int32_t ky = rows.first; ky < rows.end; ky++, x += w->dilation_h * in_bytes) {
		for (int32_t kx = cols.first; kx < cols.end; kx += run) {
			conv_windows_mve_put_run(column, ky * row_bytes + kx * in_c,
						 &x[kx * w->dilation_w * pixel], run * in_c);
		}
	}
}

NOT_INLINED void conv_windows_mve_gather_piecewise(const struct tinyml_conv_mve_s8 *p,
						   const int8_t *x, int32_t oy, int32_t ox,
						   int8_t *column)
{
	conv_windows_mve_piecewise(p, x, p->window.in_c, oy, ox, column);
}

/* The same for one of several groups. */
NOT_INLINED void conv_windows_mve_gather_apart(const struct tinyml_conv_mve_s8 *p, const int8_t *x,
					       int32_t pixel, int32_t oy, int32_t ox,
					       int8_t *column)
{
	conv_windows_mve_piecewise(p, x, pixel, oy, ox, column);
}

/* How windows that lie inside the input are copied. */
struct taking {
	int32_t ahead;     /* from one window to the next, in bytes of the input */
	int32_t in_bytes;  /* from one row to the next */
	int32_t row_bytes; /* of a window */
	int32_t rows;
	int32_t elements;
	bool straight; /* rows start at whole vectors */
	/* Others are gathered by the offsets of their elements, if there are few. */
	const uint16_t *offsets;
};

/* Where taps are apart: bytes that are adjacent, and from those to the next in the input. Not in
 * `taking`, so that other windows need no stack for it.
 */
struct runs {
	int32_t bytes;
	int32_t step;
};

/* Rows of bytes become vectors of a column, one after the other. */
static inline void conv_windows_mve_take_rows(const struct taking *t, int8_t *column,
					      const int8_t *from)
{
	int32_t rows = t->rows;

	/* clang-format off */
	__asm__ volatile(
		"1:\n\t"
		"wlstp.8 lr, %[bytes], 3f\n"
		"2:\n\t"
		"vldrb.8 q0, [%[from]], #16\n\t"
		"vstrb.8 q0, [%[column]], #64\n\t"
		"letp lr, 2b\n"
		"3:\n\t"
		"add %[from], %[from], %[skipped]\n\t"
		"subs %[rows], %[rows], #1\n\t"
		"bgt 1b"
		: [column] "+r"(column), [from] "+r"(from), [rows] "+r"(rows)
		: [bytes] "r"(t->row_bytes), [skipped] "r"(t->in_bytes - t->row_bytes)
		: "lr", "q0", "cc", "memory");
	/* clang-format on */
}

/* Vectors of a column by the offsets of their elements. Only the last one may be incomplete. */
static inline void conv_windows_mve_take_elements(const struct taking *t, int8_t *column,
						  const int8_t *from)
{
	const int32_t more = (t->elements - 1) / TINYML_LANES;
	const int32_t left = t->elements - more * TINYML_LANES;
	const uint16_t *offsets = t->offsets;
	int32_t predicate;

	/* Not all compilers know that name of the predicate's register, so its content is
	 * restored. */
	/* clang-format off */
	__asm__ volatile(
		"vmrs %[predicate], vpr\n\t"
		"wls lr, %[more], 2f\n"
		"1:\n\t"
		"vldrh.16 q0, [%[offsets]], #32\n\t"
		"vldrh.16 q1, [%[offsets], #-16]\n\t"
		"vldrb.u16 q2, [%[from], q0]\n\t"
		"vldrb.u16 q3, [%[from], q1]\n\t"
		"vstrb.16 q2, [%[column]], #64\n\t"
		"vstrb.16 q3, [%[column], #-56]\n\t"
		"le lr, 1b\n"
		"2:\n\t"
		"vldrh.16 q0, [%[offsets]]\n\t"
		"vldrh.16 q1, [%[offsets], #16]\n\t"
		"vctp.16 %[first]\n\t"
		"vpstt\n\t"
		"vldrbt.u16 q2, [%[from], q0]\n\t"
		"vstrbt.16 q2, [%[column]]\n\t"
		"vctp.16 %[second]\n\t"
		"vpstt\n\t"
		"vldrbt.u16 q3, [%[from], q1]\n\t"
		"vstrbt.16 q3, [%[column], #8]\n\t"
		"vmsr vpr, %[predicate]"
		: [column] "+l"(column), [offsets] "+l"(offsets), [predicate] "=&r"(predicate)
		: [from] "l"(from), [more] "r"(more), [first] "r"(left < 8 ? left : 8),
		  [second] "r"(left < 8 ? 0 : left - 8)
		: "lr", "q0", "q1", "q2", "q3", "memory");
	/* clang-format on */
}

/* Windows by the offsets of their elements, more than 24 and not more than 32: three channels of a
 * 3x3 kernel.
 */
#define FEWEST_OF_FOUR 25
#define MOST_OF_FOUR   32
static inline void conv_windows_mve_take_four_times_8(const struct taking *t, int8_t *column,
						      const int8_t *from, int32_t count)
{
	int32_t predicate;

	/* clang-format off */
	__asm__ volatile(
		"vmrs %[predicate], vpr\n\t"
		"vldrh.16 q0, [%[offsets]]\n\t"
		"vldrh.16 q1, [%[offsets], #16]\n\t"
		"vldrh.16 q2, [%[offsets], #32]\n\t"
		"vldrh.16 q3, [%[offsets], #48]\n\t"
		"vctp.16 %[left]\n\t"
		"dls lr, %[count]\n"
		"1:\n\t"
		"vldrb.u16 q4, [%[from], q0]\n\t"
		"vstrb.16 q4, [%[column]], #8\n\t"
		"vldrb.u16 q5, [%[from], q1]\n\t"
		"vstrb.16 q5, [%[column]], #8\n\t"
		"vldrb.u16 q4, [%[from], q2]\n\t"
		"vstrb.16 q4, [%[column], #48]\n\t"
		"vpst\n\t"
		"vldrbt.u16 q5, [%[from], q3]\n\t"
		"vstrb.16 q5, [%[column], #56]\n\t"
		"add %[from], %[from], %[ahead]\n\t"
		"le lr, 1b\n\t"
		"vmsr vpr, %[predicate]"
		: [column] "+l"(column), [from] "+l"(from), [predicate] "=&r"(predicate)
		: [offsets] "l"(t->offsets), [left] "r"(t->elements - MOST_OF_FOUR + 8),
		  [count] "r"(count), [ahead] "r"(t->ahead)
		: "lr", "q0", "q1", "q2", "q3", "q4", "q5", "memory");
	/* clang-format on */
}

/* Windows that follow one another. */
NOT_INLINED void conv_windows_mve_take_windows(const struct taking *t, int8_t *column,
					       const int8_t *from, int32_t count)
{
	if (t->offsets != NULL && t->elements >= FEWEST_OF_FOUR && t->elements <= MOST_OF_FOUR) {
		conv_windows_mve_take_four_times_8(t, column, from, count);
		return;
	}
	for (; count > 0; count--, column += TINYML_LANES, from += t->ahead) {
		if (t->straight) {
			conv_windows_mve_take_rows(t, column, from);
		} else if (t->offsets != NULL) {
			conv_windows_mve_take_elements(t, column, from);
		} else {
			for (int32_t i = 0; i < t->rows; i++) {
				conv_windows_mve_put_run(column, i * t->row_bytes,
							 &from[i * t->in_bytes], t->row_bytes);
			}
		}
	}
}

/* Windows whose taps are apart in the input: those of one of several groups, or with dilation. */
NOT_INLINED void conv_windows_mve_take_apart(const struct taking *t, const struct runs *runs,
					     int8_t *column, const int8_t *from, int32_t count)
{
	for (; count > 0; count--, column += TINYML_LANES, from += t->ahead) {
		const int8_t *line = from;

		if (t->straight) {
			conv_windows_mve_take_rows(t, column, from);
			continue;
		}
		if (t->offsets != NULL) {
			conv_windows_mve_take_elements(t, column, from);
			continue;
		}
		for (int32_t i = 0, at = 0; i < t->rows; i++, line += t->in_bytes) {
			const int8_t *run = line;

			for (int32_t end = at + t->row_bytes; at < end; at += runs->bytes) {
				conv_windows_mve_put_run(column, at, run, runs->bytes);
				run += runs->step;
			}
		}
	}
}

/* Offsets of the elements of a window, if there are few. */
#define OFFSETS 64
static bool conv_windows_mve_find_offsets(const struct taking *t, uint16_t *offsets)
{
	if (t->elements > OFFSETS || t->rows * t->in_bytes > UINT16_MAX) {
		return false;
	}
	for (int32_t i = 0; i < t->elements; i++) {
		*offsets++ = (uint16_t)(i / t->row_bytes * t->in_bytes + i % t->row_bytes);
	}
	return true;
}

/* The same for taps that are apart. */
static bool conv_windows_mve_find_apart(const struct taking *t, const struct runs *runs,
					uint16_t *offsets)
{
	if (t->elements > OFFSETS || t->rows * t->in_bytes > UINT16_MAX) {
		return false;
	}
	for (int32_t row = 0; row < t->rows; row++) {
		int32_t run = row * t->in_bytes;

		for (int32_t left = t->row_bytes; left > 0; left -= runs->bytes) {
			for (int32_t i = 0; i < runs->bytes; i++) {
				*offsets++ = (uint16_t)(run + i);
			}
			run += runs->step;
		}
	}
	return true;
}

#endif /* TINYML_CONV_WINDOWS_MVE_S8_H_ */
