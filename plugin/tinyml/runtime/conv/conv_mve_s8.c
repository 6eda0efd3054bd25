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

/* Columns are windows of the input, one after the other in the scratch memory, each padded with
 * zeros to whole vectors. So filters need no padding: whatever is read past their end is multiplied
 * by zero.
 */

/* Rows of bytes that are `from_stride` bytes apart, copied to a place where they are `to_stride`
 * apart.
 */
static inline __attribute__((always_inline)) void copy_rows(int8_t *to, int32_t to_stride,
							    const int8_t *from, int32_t from_stride,
							    int32_t bytes, int32_t rows)
{
	if (bytes > TINYML_LANES) {
		for (; rows > 0; rows--, to += to_stride, from += from_stride) {
			tinyml_copy(to, from, bytes);
		}
	} else if (rows > 0) {
		int32_t predicate;

		/* In assembly, because compilers set the predicate again for every row. Not all of
		 * them know that name of the predicate's register, so its content is restored. */
		__asm__ volatile("vmrs %[predicate], vpr\n\t"
				 "vctp.8 %[bytes]\n\t"
				 "dls lr, %[rows]\n"
				 "1:\n\t"
				 "vpstt\n\t"
				 "vldrbt.8 q0, [%[from]]\n\t"
				 "vstrbt.8 q0, [%[to]]\n\t"
				 "add %[from], %[from], %[from_stride]\n\t"
				 "add %[to], %[to], %[to_stride]\n\t"
				 "le lr, 1b\n\t"
				 "vmsr vpr, %[predicate]"
				 : [to] "+r"(to), [from] "+r"(from), [predicate] "=&r"(predicate)
				 : [bytes] "r"(bytes), [rows] "r"(rows),
				   [from_stride] "r"(from_stride), [to_stride] "r"(to_stride)
				 : "lr", "q0", "memory");
	}
}

/* Copy a dilated window, or one that extends past the input, where the zero point is used. */
NOT_INLINED void gather_piecewise(const struct tinyml_conv_mve_s8 *p, const int8_t *x, int32_t oy,
				  int32_t ox, int8_t *column)
{
	const struct tinyml_window *w = &p->window;
	const struct tinyml_span rows =
		tinyml_span(oy, w->stride_h, w->pad_top, w->kernel_h, w->dilation_h, w->in_h);
	const struct tinyml_span cols =
		tinyml_span(ox, w->stride_w, w->pad_left, w->kernel_w, w->dilation_w, w->in_w);
	const int32_t in_c = w->in_c, row_bytes = w->kernel_w * in_c, in_bytes = w->in_w * in_c;
	/* Elements that are adjacent in the column and in the input. */
	const int32_t run = w->dilation_w == 1 ? cols.end - cols.first : 1;

	tinyml_fill(column, (int8_t)p->in_zero, w->kernel_h * row_bytes);
	x += (rows.start + rows.first * w->dilation_h) * in_bytes + cols.start * in_c;
	column += rows.first * row_bytes;
	for (int32_t kx = cols.first; kx < cols.end; kx += run) {
		copy_rows(&column[kx * in_c], row_bytes, &x[kx * w->dilation_w * in_c],
			  w->dilation_h * in_bytes, run * in_c, rows.end - rows.first);
	}
}

/* Groups of four filters at three windows, in the order in which the assembly below expects them:
 * numbers are offsets.
 */
struct filters {
	const int8_t *columns[WINDOWS]; /* 0 */
	int32_t more_vectors;           /* 12: in each column, but for the first */
	const int8_t *weights;          /* 16 */
	int32_t after_first;            /* 20: from the end of a group's first pair to its second */
	int32_t after_second;           /* 24: from there to the next group */
	const int32_t *bias;            /* 28 */
	const int32_t *multiplier;      /* 32 */
	const int8_t *shift;            /* 36 */
	const int8_t *end;              /* 40: of the shifts */
	int8_t *y;                      /* 44 */
	int32_t step;                   /* 48: from the outputs of a window to those of the next */
	int32_t zero;                   /* 52 */
	int32_t low;                    /* 56 */
	int32_t high;                   /* 60 */
	int32_t sums[WINDOWS * 4];      /* 64 */
};

/* One instruction in a line. */
/* clang-format off */

/* A vector of two filters times one of three windows. Sums of the first filter are in r0, r2 and
 * r4, of the second in r6, r8 and r10.
 */
#define MULTIPLY(multiply)                                                                         \
	"vldrb.8 q0, [r1, #16]\n\t"                                                                \
	"vldrb.8 q1, [r3], #16\n\t"                                                                \
	multiply " r6, q0, q1\n\t"                                                                 \
	"vldrb.8 q2, [r5], #16\n\t"                                                                \
	multiply " r8, q0, q2\n\t"                                                                 \
	"vldrb.8 q3, [r12], #16\n\t"                                                               \
	multiply " r10, q0, q3\n\t"                                                                \
	"vldrb.8 q0, [r1], #32\n\t"                                                                \
	multiply " r0, q0, q1\n\t"                                                                 \
	multiply " r2, q0, q2\n\t"                                                                 \
	multiply " r4, q0, q3\n\t"

/* Two filters at three windows. The sums are stored 16 bytes from one window to the next. */
#define PAIR(loop, end, after, sums0, sums1, sums2)                                                \
	"ldm r11, {r3, r5, r12, lr}\n\t"                                                           \
	MULTIPLY("vmladav.s8")                                                                     \
	"wls lr, lr, " end "f\n\t"                                                                 \
	loop ":\n\t"                                                                               \
	MULTIPLY("vmladava.s8")                                                                    \
	"le lr, " loop "b\n\t"                                                                     \
	end ":\n\t"                                                                                \
	"ldr r3, [r11, #" after "]\n\t"                                                            \
	"strd r0, r6, [r11, #" sums0 "]\n\t"                                                       \
	"strd r2, r8, [r11, #" sums1 "]\n\t"                                                       \
	"strd r4, r10, [r11, #" sums2 "]\n\t"                                                      \
	"add r1, r1, r3\n\t"

/* Sums of a window become outputs: q3 and q4 hold the multipliers and shifts, r6 the zero point, q5
 * and q6 the limits.
 */
#define RESCALE(sum, multiply, round)                                                              \
	multiply " " sum ", " sum ", q3\n\t"                                                       \
	round(sum)                                                                                 \
	"vrshl.s32 " sum ", " sum ", q4\n\t"                                                       \
	"vadd.i32 " sum ", " sum ", r6\n\t"                                                        \
	"vmin.s32 " sum ", " sum ", q6\n\t"                                                        \
	"vmax.s32 " sum ", " sum ", q5\n\t"

/* The shift rounds halves up, but negative halves must round down. */
#define HALVES_AWAY(sum)                                                                           \
	"vand q7, " sum ", q4\n\t"                                                                 \
	"vshr.s32 q7, q7, #31\n\t"                                                                 \
	"vqadd.s32 " sum ", " sum ", q7\n\t"
#define HALVES_UP(sum) ""

/* In assembly, because compilers spend more instructions on moving registers than on the sums. r7
 * and r9 are left alone, because they may be the frame pointer and the platform's register.
 */
#define APPLY(filters, multiply, round)                                                            \
	do {                                                                                       \
		register struct filters *at __asm__("r0") = (filters);                             \
                                                                                                   \
		__asm__ volatile(                                                                  \
			"mov r11, r0\n\t"                                                          \
			"ldr r0, [r11, #56]\n\t"                                                   \
			"vdup.32 q5, r0\n\t"                                                       \
			"ldr r0, [r11, #60]\n\t"                                                   \
			"vdup.32 q6, r0\n\t"                                                       \
			"ldr r1, [r11, #16]\n\t"                                                   \
			"1:\n\t"                                                                   \
			PAIR("2", "3", "20", "64", "80", "96")                                     \
			PAIR("4", "5", "24", "72", "88", "104")                                    \
			"ldrd r2, r3, [r11, #28]\n\t"                                              \
			"ldr r4, [r11, #36]\n\t"                                                   \
			"ldr r6, [r11, #52]\n\t"                                                   \
			"vldrw.32 q7, [r2], #16\n\t"                                               \
			"vldrw.32 q0, [r11, #64]\n\t"                                              \
			"vadd.i32 q0, q0, q7\n\t"                                                  \
			"vldrw.32 q1, [r11, #80]\n\t"                                              \
			"vadd.i32 q1, q1, q7\n\t"                                                  \
			"vldrw.32 q2, [r11, #96]\n\t"                                              \
			"vadd.i32 q2, q2, q7\n\t"                                                  \
			"vldrw.32 q3, [r3], #16\n\t"                                               \
			"vldrb.s32 q4, [r4], #4\n\t"                                               \
			"strd r2, r3, [r11, #28]\n\t"                                              \
			RESCALE("q0", multiply, round)                                             \
			RESCALE("q1", multiply, round)                                             \
			RESCALE("q2", multiply, round)                                             \
			"ldrd r0, r2, [r11, #44]\n\t"                                              \
			"ldr r5, [r11, #40]\n\t"                                                   \
			"str r4, [r11, #36]\n\t"                                                   \
			"vstrb.32 q0, [r0], #4\n\t"                                                \
			"str r0, [r11, #44]\n\t"                                                   \
			"add r0, r0, r2\n\t"                                                       \
			"vstrb.32 q1, [r0, #-4]\n\t"                                               \
			"add r0, r0, r2\n\t"                                                       \
			"vstrb.32 q2, [r0, #-4]\n\t"                                               \
			"cmp r4, r5\n\t"                                                           \
			"bne 1b\n\t"                                                               \
			"str r1, [r11, #16]\n\t"                                                   \
			: "+r"(at)                                                                 \
			:                                                                          \
			: "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r10", "r11", "r12", "lr",     \
			  "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory");         \
	} while (false)

/* clang-format on */

struct tinyml_conv_mve {
	void (*apply)(struct filters *filters);
};

/* One function each, so that only what a model uses is linked. */
#define LOOP(name, multiply, round)                                                                \
	NOT_INLINED void apply_##name(struct filters *filters)                                     \
	{                                                                                          \
		APPLY(filters, multiply, round);                                                   \
	}                                                                                          \
	const struct tinyml_conv_mve tinyml_conv_mve_##name = {apply_##name};
LOOP(once, "vqdmulh.s32", HALVES_UP)
LOOP(twice, "vqrdmulh.s32", HALVES_AWAY)
/* Nothing below the zero point is kept: how negative halves are rounded changes no output. */
LOOP(relu, "vqrdmulh.s32", HALVES_UP)
#undef LOOP

/* Apply all filters to the windows in the columns, of which `count` are in use. */
static void apply_filters(const struct tinyml_conv_mve_s8 *p, struct filters *filters, int8_t *y,
			  int32_t step, int32_t count)
{
	const int32_t next = filters->after_second;
	int32_t left = p->window.out_c;

	filters->weights = p->weights;
	filters->bias = p->bias;
	filters->multiplier = p->multiplier;
	filters->shift = p->shift;
	if (count == WINDOWS && left >= 4) {
		filters->y = y;
		filters->step = step;
		filters->end = &p->shift[left / 4 * 4];
		p->loop->apply(filters);
		y += left / 4 * 4;
		left %= 4;
	}
	for (; left > 0; left -= 4, y += 4) {
		int8_t block[WINDOWS * 4];

		filters->y = block;
		filters->step = 4;
		filters->end = &filters->shift[4];
		if (left <= 2) { /* there is no second pair: use the first again */
			filters->after_first = -2 * TINYML_LANES * (filters->more_vectors + 1);
		}
		p->loop->apply(filters);
		filters->after_first = next;
		for (int32_t i = 0; i < count; i++) {
			tinyml_copy(&y[i * step], &block[4 * i], left < 4 ? left : 4);
		}
	}
}

void tinyml_conv_mve_s8(const struct tinyml_conv_mve_s8 *p, const int8_t *x, int8_t *y,
			void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t row_bytes = w->kernel_w * w->in_c, in_bytes = w->in_w * w->in_c;
	const int32_t elements = w->kernel_h * row_bytes;
	const int32_t vectors = (elements + TINYML_LANES - 1) / TINYML_LANES;
	const int32_t stride = vectors * TINYML_LANES, rows = w->batches * w->out_h;
	const int32_t step = p->from_the_end ? -w->out_c : w->out_c;
	const bool undilated = w->dilation_h == 1 && w->dilation_w == 1;
	int8_t *const columns = scratch;
	/* The second filter of a pair is not padded. */
	struct filters filters = {
		.columns = {columns, &columns[stride], &columns[2 * stride]},
		.more_vectors = vectors - 1,
		.after_first = elements - stride,
		.after_second = elements - stride,
		.zero = p->out_zero,
		.low = p->out_min,
		.high = p->out_max,
	};
	int32_t left = rows * w->out_w, count = 0;

	TINYML_ASSERT(TINYML_ALIGNED(scratch, 4) && p->out_min <= p->out_max);
	TINYML_ASSERT(p->round_once == (p->loop == &tinyml_conv_mve_once));
	tinyml_fill(columns, 0, WINDOWS * stride);
	y += p->from_the_end ? (left - 1) * w->out_c : 0;
	for (int32_t i = 0; i < rows; i++) {
		const int32_t row = p->from_the_end ? rows - 1 - i : i;
		const int32_t item = row / w->out_h, oy = row - item * w->out_h;
		const int8_t *from = &x[item * w->in_h * in_bytes];
		const int32_t top = oy * w->stride_h - w->pad_top;
		const bool inside = undilated && top >= 0 && top + w->kernel_h <= w->in_h;
		const int8_t *first = &from[top * in_bytes];

		for (int32_t j = 0; j < w->out_w; j++) {
			const int32_t ox = p->from_the_end ? w->out_w - 1 - j : j;
			const int32_t start = ox * w->stride_w - w->pad_left;
			int8_t *column = &columns[count++ * stride];

			/* Always a copy, so that outputs of a 1x1 convolution can be written over
			 * its inputs. */
			if (inside && start >= 0 && start + w->kernel_w <= w->in_w) {
				copy_rows(column, row_bytes, &first[start * w->in_c], in_bytes,
					  row_bytes, w->kernel_h);
			} else {
				gather_piecewise(p, from, oy, ox, column);
			}
			left--;
			if (count == WINDOWS || left == 0) {
				apply_filters(p, &filters, y, step, count);
				y += count * step;
				count = 0;
			}
		}
	}
}

#endif /* TINYML_CORE_MVE */
