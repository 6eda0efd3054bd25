/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * For conv_few_mve_s8.c and conv_few_mve_s16.c: filters that see few channels, with Helium. One
 * instruction loads elements of a window from wherever they are, so that windows need no columns;
 * only lines with padding are copied, once for all windows of a row of outputs. Four windows meet a
 * filter at a time.
 */

#ifndef TINYML_CONV_FEW_MVE_H_
#define TINYML_CONV_FEW_MVE_H_

#include <tinyml/conv.h>
#include <tinyml/tinyml.h>

#include "../weighted/assembly.h"
#include "../weighted/mve_s8.h"

#define WINDOWS 4

/* What the loop over blocks of four windows, groups and filters reads and keeps. */
struct conv_few_mve_walk {
	const int8_t *windows[WINDOWS];
	int8_t *y;
	const int8_t *filters;
	int32_t ahead; /* bytes from the windows of a block to those of the next; and of outputs */
	int32_t out_ahead;
	const void *offsets;
	int32_t more;    /* vectors of a filter after the first one */
	int32_t in_step; /* bytes from a group to the next; and of outputs */
	int32_t out_step;
	int32_t out_bytes; /* of all groups */
	int32_t once;      /* see tinyml_rescale_once() */
	int32_t zero;
	int32_t count; /* of positions of a block, at most four */
	int32_t blocks;
	uint32_t places[WINDOWS]; /* of outputs of a block, in bytes */
	int32_t low[WINDOWS];
	int32_t high[WINDOWS];
};
TINYML_OFFSET(struct conv_few_mve_walk, windows, 0);
TINYML_OFFSET(struct conv_few_mve_walk, y, 16);
TINYML_OFFSET(struct conv_few_mve_walk, filters, 20);
TINYML_OFFSET(struct conv_few_mve_walk, ahead, 24);
TINYML_OFFSET(struct conv_few_mve_walk, out_ahead, 28);
TINYML_OFFSET(struct conv_few_mve_walk, offsets, 32);
TINYML_OFFSET(struct conv_few_mve_walk, more, 36);
TINYML_OFFSET(struct conv_few_mve_walk, in_step, 40);
TINYML_OFFSET(struct conv_few_mve_walk, out_step, 44);
TINYML_OFFSET(struct conv_few_mve_walk, out_bytes, 48);
TINYML_OFFSET(struct conv_few_mve_walk, once, 52);
TINYML_OFFSET(struct conv_few_mve_walk, zero, 56);
TINYML_OFFSET(struct conv_few_mve_walk, count, 60);
TINYML_OFFSET(struct conv_few_mve_walk, blocks, 64);
TINYML_OFFSET(struct conv_few_mve_walk, places, 68);
TINYML_OFFSET(struct conv_few_mve_walk, low, 84);
TINYML_OFFSET(struct conv_few_mve_walk, high, 100);

/* The body of a function of the walk alone. STEP multiplies a vector of a filter, at r7, by those
 * of windows at r1, r3, r5 and r9, whose offsets are at r2, into sums in r4, r6, r8 and r10.
 * Outputs are at r11, and those of a group end at r12.
 */
/* clang-format off */
#define CONV_FEW_MVE(step, store, size)                                                            \
	"push {r4-r11, lr}\n\t"                                                                    \
	"vpush {d10-d15}\n\t"                                                                      \
	"ldr r2, [r0, #60]\n\t"                                                                    \
	"vctp.32 r2\n\t"                                                                           \
	"add r2, r0, #68\n\t"                                                                      \
	"vldrw.u32 q5, [r2]\n\t"                                                                   \
	"vldrw.u32 q6, [r2, #16]\n\t"                                                              \
	"vldrw.u32 q7, [r2, #32]\n"                                                                \
	"1:\n\t" /* a block */                                                                     \
	"ldm r0, {r1, r3, r5, r9, r11}\n\t"                                                        \
	"ldr r7, [r0, #20]\n\t"                                                                    \
	"ldr r2, [r0, #44]\n\t"                                                                    \
	"add r12, r11, r2\n"                                                                       \
	"2:\n\t" /* a filter */                                                                    \
	"ldrd r2, lr, [r0, #32]\n\t"                                                               \
	step("vmladav")                                                                            \
	"wls lr, lr, 4f\n"                                                                         \
	"3:\n\t"                                                                                   \
	step("vmladava")                                                                           \
	"le lr, 3b\n"                                                                              \
	"4:\n\t"                                                                                   \
	"vmov q0[2], q0[0], r4, r8\n\t"                                                            \
	"vmov q0[3], q0[1], r6, r10\n\t"                                                           \
	"ldm r7!, {r4, r6, r8}\n\t"                                                                \
	"ldrd r2, r10, [r0, #52]\n\t"                                                              \
	"vadd.i32 q0, q0, r4\n\t"                                                                  \
	"cbz r2, 6f\n\t"                                                                           \
	"vqdmulh.s32 q0, q0, r6\n"                                                                 \
	"5:\n\t"                                                                                   \
	"vrshl.s32 q0, r8\n\t"                                                                     \
	"vqadd.s32 q0, q0, r10\n\t"                                                                \
	"vmax.s32 q0, q0, q6\n\t"                                                                  \
	"vmin.s32 q0, q0, q7\n\t"                                                                  \
	"vpst\n\t"                                                                                 \
	store " q0, [r11, q5]\n\t"                                                                 \
	"adds r11, #" size "\n\t"                                                                  \
	"cmp r11, r12\n\t"                                                                         \
	"bne 2b\n\t"                                                                               \
	"add r2, r0, #40\n\t" /* the next group */                                                 \
	"ldm r2, {r4, r6, r8}\n\t"                                                                 \
	"ldr r10, [r0, #16]\n\t"                                                                   \
	"add r1, r4\n\t"                                                                           \
	"add r3, r4\n\t"                                                                           \
	"add r5, r4\n\t"                                                                           \
	"add r9, r4\n\t"                                                                           \
	"add r10, r8\n\t"                                                                          \
	"add r12, r6\n\t"                                                                          \
	"cmp r11, r10\n\t"                                                                         \
	"bne 2b\n\t"                                                                               \
	"ldm r0, {r1, r3, r5, r9, r11}\n\t" /* the next block */                                   \
	"ldrd r2, r4, [r0, #24]\n\t"                                                               \
	"ldr r6, [r0, #64]\n\t"                                                                    \
	"add r1, r2\n\t"                                                                           \
	"add r3, r2\n\t"                                                                           \
	"add r5, r2\n\t"                                                                           \
	"add r9, r2\n\t"                                                                           \
	"add r11, r4\n\t"                                                                          \
	"stm r0, {r1, r3, r5, r9, r11}\n\t"                                                        \
	"subs r6, #1\n\t"                                                                          \
	"str r6, [r0, #64]\n\t"                                                                    \
	"bne 1b\n\t"                                                                               \
	"vpop {d10-d15}\n\t"                                                                       \
	"pop {r4-r11, pc}\n"                                                                       \
	"6:\n\t" /* the shift rounds halves up, but negative halves must round down */             \
	"vqrdmulh.s32 q0, q0, r6\n\t"                                                              \
	"vshr.s32 q1, q0, #31\n\t"                                                                 \
	"vqadd.s32 q0, q0, q1\n\t"                                                                 \
	"b 5b\n\t"
/* clang-format on */

typedef void conv_few_mve_apply(struct conv_few_mve_walk *walk);

/* Copy `count` pixels of so many bytes. */
static void conv_few_mve_pixels(int8_t *to, int32_t to_step, const int8_t *from, int32_t from_step,
				int32_t bytes, int32_t count)
{
	const mve_pred16_t some = vctp8q((uint32_t)bytes);

	if (bytes == to_step && bytes == from_step) {
		tinyml_copy(to, from, count * bytes);
	} else if (bytes > TINYML_LANES) {
		for (; count > 0; count--, to += to_step, from += from_step) {
			tinyml_copy(to, from, bytes);
		}
	} else {
		for (; count > 0; count--, to += to_step, from += from_step) {
			vstrbq_p_s8(to, vldrbq_z_s8(from, some), some);
		}
	}
}

/* The lines that a row of outputs meets, with what is padding in them; columns of padding are
 * there. `x` is the first channel that is copied.
 */
static void conv_few_mve_lines(const struct tinyml_conv_few_mve *p, const int8_t *x, int32_t top,
			       int32_t size, int8_t *lines)
{
	const struct tinyml_window *w = &p->window;
	const int32_t pixel = size * w->in_c, room = p->columns - w->pad_left;
	const int32_t some = room < w->in_w ? room : w->in_w, inside = some > 0 ? some : 0;

	lines += w->pad_left * p->column;
	for (int32_t i = 0; i < w->kernel_h; i++, top += w->dilation_h, lines += p->row) {
		const bool padding = top < 0 || top >= w->in_h;

		if (!padding) {
			conv_few_mve_pixels(lines, p->column, &x[top * w->in_w * pixel], pixel,
					    p->copied, inside);
		} else if (p->column == p->copied) {
			tinyml_fill(lines, (int8_t)p->in_zero, inside * p->copied);
		} else {
			for (int32_t j = 0; j < inside; j++) {
				tinyml_fill(&lines[j * p->column], (int8_t)p->in_zero, p->copied);
			}
		}
	}
}

/* A row of outputs, whose first window is at `from`. */
static inline void conv_few_mve_row(const struct tinyml_window *w, struct conv_few_mve_walk *walk,
				    const int8_t *from, int32_t step, int8_t *y,
				    conv_few_mve_apply *apply)
{
	const int32_t last = w->out_w - WINDOWS; /* the last block begins there */
	int32_t at = 0;

	walk->blocks = last < 0 ? 1 : w->out_w / WINDOWS;
	do {
		for (int32_t j = 0; j < WINDOWS; j++) {
			walk->windows[j] = &from[(at + (j < w->out_w ? j : 0)) * step];
		}
		walk->y = &y[at * (int32_t)walk->places[1]];
		apply(walk);
		at = at == 0 && last > 0 && w->out_w % WINDOWS != 0 ? last : 0;
		walk->blocks = 1;
	} while (at != 0);
}

/* `size`: bytes of an element. */
static inline __attribute__((always_inline)) void
conv_few_mve_convolve(const struct tinyml_conv_few_mve *p, const int8_t *x, int8_t *y,
		      int8_t *lines, int32_t size, conv_few_mve_apply *apply)
{
	const struct tinyml_window *w = &p->window;
	const bool copied = p->copied > 0;
	const int32_t pixel = size * w->in_c, out_pixel = size * w->out_c;
	const int32_t in_group = pixel / p->groups, out_group = out_pixel / p->groups;
	/* of channels that are walked together */
	const int32_t in_part = copied ? p->copied : pixel;
	const int32_t out_part = in_part / in_group * out_group;
	const int32_t step = w->stride_w * (copied ? p->column : pixel);
	struct conv_few_mve_walk walk = {
		.ahead = WINDOWS * step,
		.out_ahead = WINDOWS * out_pixel,
		.offsets = p->offsets,
		.more = p->vectors - 1,
		.in_step = in_group,
		.out_step = out_group,
		.once = p->round_once,
		.zero = p->out_zero,
		.count = w->out_w < WINDOWS ? w->out_w : WINDOWS,
	};

	vst1q_u32(walk.places, vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)out_pixel));
	vst1q_s32(walk.low, vdupq_n_s32(p->out_min));
	vst1q_s32(walk.high, vdupq_n_s32(p->out_max));
	if (copied) {
		tinyml_fill(lines, (int8_t)p->in_zero, p->line_bytes);
	}
	for (int32_t n = 0; n < w->batches; n++) {
		walk.filters = p->filters;
		for (int32_t in = 0, out = 0; in < pixel; in += in_part, out += out_part) {
			const int32_t part = out_pixel - out;

			walk.out_bytes = part < out_part ? part : out_part;
			for (int32_t i = 0; i < w->out_h; i++) {
				const int32_t top = i * w->stride_h - w->pad_top;
				const int8_t *from = lines;

				if (copied) {
					conv_few_mve_lines(p, &x[in], top, size, lines);
				} else {
					from = &x[top * w->in_w * pixel];
				}
				conv_few_mve_row(w, &walk, from, step,
						 &y[i * w->out_w * out_pixel + out], apply);
			}
			walk.filters += out_part / size * p->filter_bytes;
		}
		x += w->in_h * w->in_w * pixel;
		y += w->out_h * w->out_w * out_pixel;
	}
}

#endif /* TINYML_CONV_FEW_MVE_H_ */
