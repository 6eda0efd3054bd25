/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions whose filters are short, with Helium: a row of a window, at most sixteen elements,
 * is a vector that is loaded from where it is in the input. Lanes are the sums of four filters at a
 * window, of two at two windows, or of one at four. VMLADAV requires its sum in an even register.
 */

#include <tinyml/conv.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "../weighted/assembly.h"
#include "../weighted/mve_s8.h"

TINYML_OFFSET(struct tinyml_conv_short_mve_walk, x, 0);
TINYML_OFFSET(struct tinyml_conv_short_mve_walk, y, 4);
TINYML_OFFSET(struct tinyml_conv_short_mve_walk, blocks, 8);
TINYML_OFFSET(struct tinyml_conv_short_mve_walk, step, 12);
TINYML_OFFSET(struct tinyml_conv_short_mve_walk, out_step, 16);
TINYML_OFFSET(struct tinyml_conv_short_mve_walk, filters, 20);
TINYML_OFFSET(struct tinyml_conv_short_mve_walk, line, 24);
TINYML_OFFSET(struct tinyml_conv_short_mve_walk, more, 28);
TINYML_OFFSET(struct tinyml_conv_short_mve_walk, row, 32);
TINYML_OFFSET(struct tinyml_conv_short_mve_walk, zero, 36);

/* One instruction in a line. */
/* clang-format off */

#define BEGIN                                                                                      \
	"push {r4-r11, lr}\n\t"                                                                    \
	"vpush {d8-d15}\n\t"                                                                       \
	"ldr r2, [r0, #32]\n\t"                                                                    \
	"vctp.8 r2\n\t"

#define END                                                                                        \
	"vpop {d8-d15}\n\t"                                                                        \
	"pop {r4-r11, pc}\n\t"

/* Sums in r4, r6, r8 and r10 become four bytes; the zero point is in `zero`. */
#define OUTPUTS(multiply, bias, factor, shift, zero)                                               \
	"vmov q0[2], q0[0], r4, r8\n\t"                                                            \
	"vmov q0[3], q0[1], r6, r10\n\t"                                                           \
	"vadd.i32 q0, q0, " bias "\n\t"                                                            \
	multiply(factor)                                                                           \
	"vrshl.s32 q0, q0, " shift "\n\t"                                                          \
	"vqadd.s32 q0, q0, " zero "\n\t"                                                           \
	"vqmovnb.s32 q0, q0\n\t"                                                                   \
	"vqmovnb.s16 q0, q0\n\t"
#define ONCE(factor) "vqdmulh.s32 q0, q0, " factor "\n\t"
/* The shift rounds halves up, but negative halves must round down. */
#define TWICE(factor)                                                                              \
	"vqrdmulh.s32 q0, q0, " factor "\n\t"                                                      \
	"vshr.s32 " factor ", q0, #31\n\t"                                                         \
	"vqadd.s32 q0, q0, " factor "\n\t"

/* Offsets of outputs in q7: those of one window, then of the next. */
#define PLACES                                                                                     \
	"vmov q7[2], q7[0], r4, r8\n\t"                                                            \
	"vmov q7[3], q7[1], r6, r10\n\t"

/* Rows of windows are single vectors: weights stay in registers. */
#define POINTS(name, multiply, again)                                                              \
	TINYML_ASSEMBLY void name(void *walk TINYML_UNSEEN)                                        \
	{                                                                                          \
		__asm__ volatile(                                                                  \
			BEGIN                                                                      \
			"ldm r0, {r1, r2, r3, r11, r12}\n\t"                                       \
			"ldr r5, [r0, #20]\n\t"                                                    \
			"ldr r7, [r0, #36]\n\t"                                                    \
			"vldrw.u32 q1, [r5]\n\t"                                                   \
			"vldrw.u32 q2, [r5, #16]\n\t"                                              \
			"vldrw.u32 q3, [r5, #32]\n\t"                                              \
			"vldrw.u32 q4, [r5, #48]\n\t"                                              \
			"vldrw.u32 q5, [r5, #64]\n\t"                                              \
			"vldrw.u32 q6, [r5, #80]\n\t"                                              \
			"vldrw.u32 q7, [r5, #96]\n\t"                                              \
			"dls lr, r3\n"                                                             \
			"1:\n\t" /* a window */                                                    \
			"vpst\n\t"                                                                 \
			"vldrbt.u8 q0, [r1]\n\t"                                                   \
			"vmladav.s8 r4, q4, q0\n\t"                                                \
			"vmladav.s8 r6, q5, q0\n\t"                                                \
			"vmladav.s8 r8, q6, q0\n\t"                                                \
			"vmladav.s8 r10, q7, q0\n\t"                                               \
			"add r1, r11\n\t"                                                          \
			OUTPUTS(multiply, "q1", "q2", "q3", "r7")                                  \
			"vstrb.32 q0, [r2]\n\t"                                                    \
			again                                                                      \
			"add r2, r12\n\t"                                                          \
			"le lr, 1b\n\t"                                                            \
			END);                                                                      \
	}
#define KEPT
/* Two roundings take a register, so that the factors are loaded again. */
#define LOADED "vldrw.u32 q2, [r5, #16]\n\t"

/* A row of a window times four filters. */
#define FOUR(multiply)                                                                             \
	"vpst\n\t"                                                                                 \
	"vldrbt.u8 q0, [r1]\n\t"                                                                   \
	"vldrb.u8 q1, [r2], #64\n\t"                                                               \
	multiply ".s8 r4, q1, q0\n\t"                                                              \
	"vldrb.u8 q2, [r2, #-48]\n\t"                                                              \
	multiply ".s8 r6, q2, q0\n\t"                                                              \
	"vldrb.u8 q3, [r2, #-32]\n\t"                                                              \
	multiply ".s8 r8, q3, q0\n\t"                                                              \
	"vldrb.u8 q1, [r2, #-16]\n\t"                                                              \
	multiply ".s8 r10, q1, q0\n\t"                                                             \
	"add r1, r3\n\t"

#define FOURS(name, multiply)                                                                      \
	TINYML_ASSEMBLY void name(void *walk TINYML_UNSEEN)                                        \
	{                                                                                          \
		__asm__ volatile(                                                                  \
			BEGIN                                                                      \
			"ldm r0, {r1, r5, r7, r11, r12}\n\t"                                       \
			"mov r9, r1\n\t"                                                           \
			"ldr r3, [r0, #24]\n"                                                      \
			"1:\n\t" /* a window */                                                    \
			"ldr r2, [r0, #20]\n\t"                                                    \
			"ldr lr, [r0, #28]\n\t"                                                    \
			"vldrw.u32 q4, [r2]\n\t"                                                   \
			"vldrw.u32 q5, [r2, #16]\n\t"                                              \
			"vldrw.u32 q6, [r2, #32]\n\t"                                              \
			"adds r2, #48\n\t"                                                         \
			"mov r1, r9\n\t"                                                           \
			FOUR("vmladav")                                                            \
			"wls lr, lr, 3f\n"                                                         \
			"2:\n\t"                                                                   \
			FOUR("vmladava")                                                           \
			"le lr, 2b\n"                                                              \
			"3:\n\t"                                                                   \
			"ldr r1, [r0, #36]\n\t"                                                    \
			OUTPUTS(multiply, "q4", "q5", "q6", "r1")                                  \
			"vstrb.32 q0, [r5]\n\t"                                                    \
			"add r9, r11\n\t"                                                          \
			"add r5, r12\n\t"                                                          \
			"subs r7, #1\n\t"                                                          \
			"bne 1b\n\t"                                                               \
			END);                                                                      \
	}

/* Rows of two windows times two filters. */
#define TWO(multiply)                                                                              \
	"vpstt\n\t"                                                                                \
	"vldrbt.u8 q0, [r1]\n\t"                                                                   \
	"vldrbt.u8 q1, [r3]\n\t"                                                                   \
	"vldrb.u8 q2, [r2], #32\n\t"                                                               \
	multiply ".s8 r4, q2, q0\n\t"                                                              \
	multiply ".s8 r8, q2, q1\n\t"                                                              \
	"vldrb.u8 q3, [r2, #-16]\n\t"                                                              \
	multiply ".s8 r6, q3, q0\n\t"                                                              \
	multiply ".s8 r10, q3, q1\n\t"                                                             \
	"add r1, r12\n\t"                                                                          \
	"add r3, r12\n\t"

#define TWOS(name, multiply)                                                                       \
	TINYML_ASSEMBLY void name(void *walk TINYML_UNSEEN)                                        \
	{                                                                                          \
		__asm__ volatile(                                                                  \
			BEGIN                                                                      \
			"ldm r0, {r1, r5, r7, r11, r12}\n\t"                                       \
			"mov r9, r1\n\t"                                                           \
			"movs r4, #0\n\t"                                                          \
			"movs r6, #1\n\t"                                                          \
			"mov r8, r12\n\t"                                                          \
			"add r10, r12, #1\n\t"                                                     \
			PLACES                                                                     \
			"ldr r12, [r0, #24]\n"                                                     \
			"1:\n\t" /* two windows */                                                 \
			"ldr r2, [r0, #20]\n\t"                                                    \
			"ldr lr, [r0, #28]\n\t"                                                    \
			"vldrw.u32 q4, [r2]\n\t"                                                   \
			"vldrw.u32 q5, [r2, #16]\n\t"                                              \
			"vldrw.u32 q6, [r2, #32]\n\t"                                              \
			"adds r2, #48\n\t"                                                         \
			"mov r1, r9\n\t"                                                           \
			"add r3, r9, r11\n\t"                                                      \
			TWO("vmladav")                                                             \
			"wls lr, lr, 3f\n"                                                         \
			"2:\n\t"                                                                   \
			TWO("vmladava")                                                            \
			"le lr, 2b\n"                                                              \
			"3:\n\t"                                                                   \
			"ldr r1, [r0, #36]\n\t"                                                    \
			"ldr r3, [r0, #16]\n\t"                                                    \
			OUTPUTS(multiply, "q4", "q5", "q6", "r1")                                  \
			"vstrb.32 q0, [r5, q7]\n\t"                                                \
			"add r9, r9, r11, lsl #1\n\t"                                              \
			"add r5, r5, r3, lsl #1\n\t"                                               \
			"subs r7, #1\n\t"                                                          \
			"bne 1b\n\t"                                                               \
			"strd r9, r5, [r0]\n\t"                                                    \
			END);                                                                      \
	}

/* Rows of four windows times a filter. */
#define ONE(multiply)                                                                              \
	"vpstttt\n\t"                                                                              \
	"vldrbt.u8 q0, [r1]\n\t"                                                                   \
	"vldrbt.u8 q1, [r3]\n\t"                                                                   \
	"vldrbt.u8 q2, [r5]\n\t"                                                                   \
	"vldrbt.u8 q3, [r7]\n\t"                                                                   \
	"vldrb.u8 q4, [r2], #16\n\t"                                                               \
	multiply ".s8 r4, q4, q0\n\t"                                                              \
	multiply ".s8 r6, q4, q1\n\t"                                                              \
	multiply ".s8 r8, q4, q2\n\t"                                                              \
	multiply ".s8 r10, q4, q3\n\t"                                                             \
	"add r1, r12\n\t"                                                                          \
	"add r3, r12\n\t"                                                                          \
	"add r5, r12\n\t"                                                                          \
	"add r7, r12\n\t"

#define ONES(name, multiply)                                                                       \
	TINYML_ASSEMBLY void name(void *walk TINYML_UNSEEN)                                        \
	{                                                                                          \
		__asm__ volatile(                                                                  \
			BEGIN                                                                      \
			"ldm r0, {r9, r10, r11, r12}\n\t"                                          \
			"mov r11, r12\n\t"                                                         \
			"ldr r6, [r0, #16]\n\t"                                                    \
			"movs r4, #0\n\t"                                                          \
			"lsl r8, r6, #1\n\t"                                                       \
			"add r10, r8, r6\n\t"                                                      \
			PLACES                                                                     \
			"ldr r12, [r0, #24]\n"                                                     \
			"1:\n\t" /* four windows */                                                \
			"ldr r2, [r0, #20]\n\t"                                                    \
			"ldr lr, [r0, #28]\n\t"                                                    \
			"adds r2, #48\n\t"                                                         \
			"mov r1, r9\n\t"                                                           \
			"add r3, r1, r11\n\t"                                                      \
			"add r5, r3, r11\n\t"                                                      \
			"add r7, r5, r11\n\t"                                                      \
			ONE("vmladav")                                                             \
			"wls lr, lr, 3f\n"                                                         \
			"2:\n\t"                                                                   \
			ONE("vmladava")                                                            \
			"le lr, 2b\n"                                                              \
			"3:\n\t"                                                                   \
			"ldr r2, [r0, #20]\n\t"                                                    \
			"vldrw.u32 q1, [r2]\n\t"                                                   \
			"vldrw.u32 q2, [r2, #16]\n\t"                                              \
			"vldrw.u32 q3, [r2, #32]\n\t"                                              \
			"ldr r1, [r0, #36]\n\t"                                                    \
			OUTPUTS(multiply, "q1", "q2", "q3", "r1")                                  \
			"ldm r0, {r1, r3, r5, r7}\n\t"                                             \
			"ldr r7, [r0, #16]\n\t"                                                    \
			"vstrb.32 q0, [r3, q7]\n\t"                                                \
			"add r9, r9, r11, lsl #2\n\t"                                              \
			"add r3, r3, r7, lsl #2\n\t"                                               \
			"subs r5, #1\n\t"                                                          \
			"strd r3, r5, [r0, #4]\n\t"                                                \
			"bne 1b\n\t"                                                               \
			"str r9, [r0]\n\t"                                                         \
			END);                                                                      \
	}

POINTS(tinyml_conv_short_mve_points_once, ONCE, KEPT)
POINTS(tinyml_conv_short_mve_points_twice, TWICE, LOADED)
FOURS(tinyml_conv_short_mve_fours_once, ONCE)
FOURS(tinyml_conv_short_mve_fours_twice, TWICE)
TWOS(tinyml_conv_short_mve_twos_once, ONCE)
TWOS(tinyml_conv_short_mve_twos_twice, TWICE)
ONES(tinyml_conv_short_mve_ones_once, ONCE)
ONES(tinyml_conv_short_mve_ones_twice, TWICE)
/* clang-format on */

typedef struct tinyml_conv_short_mve_walk conv_short_walk;

struct conv_short {
	const struct tinyml_conv_short_s8 *p;
	conv_short_walk walk;
};

static const int32_t *conv_short_choose(struct conv_short *c, const int32_t *filters, int32_t size)
{
	return filters + 12 + 4 * size * c->p->window.kernel_h;
}

#include "conv_short_s8.h"

/* The lines that a row of outputs meets; columns of padding are there. */
static void conv_short_mve_copy(const struct tinyml_conv_short_s8 *p, const int8_t *x, int32_t top,
				int32_t bytes, int8_t *lines)
{
	const struct tinyml_window *w = &p->window;
	const int32_t room = bytes - w->pad_left * w->in_c, whole = w->in_w * w->in_c;
	const int32_t count = room < whole ? room : whole;

	lines += w->pad_left * w->in_c;
	for (int32_t i = 0; i < w->kernel_h; i++, top += w->dilation_h, lines += bytes) {
		if (top >= 0 && top < w->in_h) {
			tinyml_copy(lines, &x[top * whole], count);
		} else {
			tinyml_fill(lines, (int8_t)p->in_zero, count);
		}
	}
}

void tinyml_conv_short_mve_s8(const struct tinyml_conv_short_s8 *p, const int8_t *x, int8_t *y,
			      void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t bytes = ((w->out_w - 1) * w->stride_w + w->kernel_w) * w->in_c;
	const int32_t line = w->in_w * w->in_c;
	const bool narrow = p->cols.begin > 0 || p->cols.end < w->out_w;
	struct conv_short c;

	TINYML_ASSERT(w->kernel_w * w->in_c <= TINYML_LANES);
	c.p = p;
	c.walk.step = w->stride_w * w->in_c;
	c.walk.out_step = w->out_c;
	c.walk.more = w->kernel_h - 1;
	c.walk.row = w->kernel_w * w->in_c;
	c.walk.zero = p->out_zero;
	if (narrow) {
		tinyml_fill(scratch, (int8_t)p->in_zero, w->kernel_h * bytes);
	}
	for (int32_t n = w->batches; n > 0; n--, x += w->in_h * line) {
		int32_t top = -w->pad_top;

		for (int32_t i = 0; i < w->out_h; i++, top += w->stride_h) {
			const int8_t *from = scratch;

			c.walk.line = bytes;
			if (narrow || i < p->rows.begin || i >= p->rows.end) {
				conv_short_mve_copy(p, x, top, bytes, scratch);
			} else {
				from = &x[top * line - w->pad_left * w->in_c];
				c.walk.line = w->dilation_h * line;
			}
			conv_short_run(&c, from, y, w->out_w);
			y += w->out_w * w->out_c;
		}
	}
}

#endif /* TINYML_CORE_MVE */
