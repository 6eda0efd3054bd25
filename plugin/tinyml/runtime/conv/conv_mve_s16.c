/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions with int16 activations and Helium: four windows meet two filters at a time, eight
 * elements of each. VMLADAV requires its sum in an even register; all eight are in use. */

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "../weighted/assembly.h"
#include "../weighted/mve_s16.h"
#include "window_s16.h"

#define WINDOWS 4
#define LANES   8

struct conv_mve_s16_group {
	int32_t first_in;
	int32_t in_c;
	int32_t elements; /* of a filter */
	int32_t vectors;
	int32_t skipped; /* bytes of code in the first turn over them */
	bool straight;   /* windows inside the input are adjacent in it, and need no copy */
	bool row;        /* and each row of outputs meets one row of the input */
	bool flat;       /* and each position of the input is one, in the order of outputs */
	bool narrow; /* a row of taps is one run of the input, of half a vector to a whole one */
	int16_t *columns; /* copies of four windows */
};

/* What the loop over pairs of filters reads and keeps. */
struct conv_mve_s16_walk {
	const int16_t *windows[WINDOWS];
	const int32_t *bias;
	const int32_t *factor;
	const uint8_t *shift;
	int32_t rare;              /* SOME and SHIFTS */
	const int8_t *end;         /* of the weights */
	int32_t step;              /* bytes of the output from a position to the next */
	int32_t count;             /* of positions */
	int32_t both;              /* 0: a single filter, whose pair is zeros */
	uint32_t outputs[WINDOWS]; /* addresses of four bytes before the outputs of a position */
	int16_t low[LANES];
	int16_t high[LANES];
};
TINYML_OFFSET(struct conv_mve_s16_walk, windows, 0);
TINYML_OFFSET(struct conv_mve_s16_walk, bias, 16);
TINYML_OFFSET(struct conv_mve_s16_walk, factor, 20);
TINYML_OFFSET(struct conv_mve_s16_walk, shift, 24);
TINYML_OFFSET(struct conv_mve_s16_walk, rare, 28);
TINYML_OFFSET(struct conv_mve_s16_walk, end, 32);
TINYML_OFFSET(struct conv_mve_s16_walk, step, 36);
TINYML_OFFSET(struct conv_mve_s16_walk, count, 40);
TINYML_OFFSET(struct conv_mve_s16_walk, both, 44);
TINYML_OFFSET(struct conv_mve_s16_walk, outputs, 48);
TINYML_OFFSET(struct conv_mve_s16_walk, low, 64);
TINYML_OFFSET(struct conv_mve_s16_walk, high, 80);

#define SOME   1 /* not all outputs of four positions and of both filters are written */
#define SHIFTS 2 /* factors do not contain them */

#define TURN         8  /* vectors: a turn of the loop over them */
#define VECTOR_BYTES 56 /* of the code for a vector of each window and filter */
#define CHECK_BYTES  10 /* and for whether there are more */

/* The outputs of pairs of filters at up to four windows. Returns what follows the weights. `end` is
 * that of the first window. The first turn of the loop over vectors begins `skipped` bytes of code
 * later.
 */
TINYML_ASSEMBLY static const int8_t *
conv_mve_s16_filters(const int8_t *weights TINYML_UNSEEN,
		     struct conv_mve_s16_walk *walk TINYML_UNSEEN, const int16_t *end TINYML_UNSEEN,
		     int32_t skipped TINYML_UNSEEN)
{
	/* clang-format off */
#define STEP(multiply)                                                                             \
	"vldrb.s16 q0, [r1], #8\n\t"                                                               \
	"vldrh.16 q2, [r3], #16\n\t"                                                               \
	"vldrb.s16 q1, [r1], #8\n\t"                                                               \
	multiply " r0, q0, q2\n\t"                                                                 \
	"vldrh.16 q3, [r5], #16\n\t"                                                               \
	multiply " r8, q1, q2\n\t"                                                                 \
	multiply " r2, q0, q3\n\t"                                                                 \
	"vldrh.16 q2, [r7], #16\n\t"                                                               \
	multiply " r10, q1, q3\n\t"                                                                \
	multiply " r4, q0, q2\n\t"                                                                 \
	"vldrh.16 q3, [r9], #16\n\t"                                                               \
	multiply " r12, q1, q2\n\t"                                                                \
	multiply " r6, q0, q3\n\t"                                                                 \
	multiply " lr, q1, q3\n\t"
	/* Outputs of both filters are a word for each position. */
#define LIMIT                                                                                      \
	"vqmovnb.s32 q0, q0\n\t"                                                                   \
	"vqmovnt.s32 q0, q1\n\t"                                                                   \
	"vmax.s16 q0, q0, q4\n\t"                                                                  \
	"vmin.s16 q0, q0, q5\n\t"
	__asm__ volatile(
		"push {r1-r11, lr}\n\t"
		"vpush {d8-d13}\n\t"
		"mov r11, r1\n\t"
		"mov r1, r0\n\t"
		"vldrw.u32 q6, [r11, #48]\n\t"
		"vldrh.16 q4, [r11, #64]\n\t"
		"vldrh.16 q5, [r11, #80]\n"
		"1:\n\t" /* a pair of filters: the first vectors, then more of them in turns */
		"ldm r11, {r3, r5, r7, r9}\n\t"
		"ldr r11, [sp, #56]\n\t"
		STEP("vmladav.s16")
		"add pc, r11\n\t"
		"nop\n"
		"2:\n\t"
		STEP("vmladava.s16")
		"3:\n\t"
		STEP("vmladava.s16")
		STEP("vmladava.s16")
		STEP("vmladava.s16")
		STEP("vmladava.s16")
		STEP("vmladava.s16")
		STEP("vmladava.s16")
		STEP("vmladava.s16")
		TINYML_CODE_BYTES("2b", "3b", VECTOR_BYTES)
		"4:\n\t"
		"ldr r11, [sp, #52]\n\t"
		"cmp r3, r11\n\t"
		"bne.w 2b\n"
		"40:\n\t"
		TINYML_CODE_BYTES("4b", "40b", CHECK_BYTES)
		"ldr r11, [sp, #48]\n\t"
		"vmov q0[2], q0[0], r0, r4\n\t"
		"vmov q0[3], q0[1], r2, r6\n\t"
		"ldrd r2, r3, [r11, #16]\n\t"
		"vmov q1[2], q1[0], r8, r12\n\t"
		"vmov q1[3], q1[1], r10, lr\n\t"
		"ldrd r4, r6, [r2], #8\n\t"
		"ldrd r8, r10, [r3], #8\n\t"
		"vadd.i32 q0, q0, r4\n\t"
		"strd r2, r3, [r11, #16]\n\t"
		"vadd.i32 q1, q1, r6\n\t"
		"ldrd r6, r4, [r11, #28]\n\t"
		"cbnz r6, 6f\n\t"
		"vqrdmulh.s32 q0, q0, r8\n\t"
		"vqrdmulh.s32 q1, q1, r10\n\t"
		LIMIT
		"5:\n\t"
		"vstrw.32 q0, [q6, #4]!\n\t"
		"cmp r1, r4\n\t"
		"bne 1b\n"
		"50:\n\t"
		"mov r0, r1\n\t"
		"vpop {d8-d13}\n\t"
		"add sp, #12\n\t"
		"pop {r4-r11, pc}\n"
		"6:\n\t"
		"lsrs r6, r6, #1\n\t" /* SHIFTS; and the carry is SOME */
		"bne 7f\n\t"
		"vqrdmulh.s32 q0, q0, r8\n\t"
		"vqrdmulh.s32 q1, q1, r10\n\t"
		"b 8f\n"
		"7:\n\t"
		"ldr r12, [r11, #24]\n\t"
		"ldrb r0, [r12], #1\n\t"
		"ldrb lr, [r12], #1\n\t"
		"str r12, [r11, #24]\n\t"
		"mvn r0, r0\n\t" /* products are doubled: one more to the right */
		"mvn lr, lr\n\t"
		"vqdmulh.s32 q0, q0, r8\n\t"
		"vqdmulh.s32 q1, q1, r10\n\t"
		"vrshl.s32 q0, r0\n\t"
		"vrshl.s32 q1, lr\n"
		"8:\n\t"
		LIMIT
		"bcc 5b\n\t"
		"mov r0, #4\n\t" /* fewer positions, or a single filter */
		"vadd.i32 q6, q6, r0\n\t"
		"vmov r8, r10, q0[2], q0[0]\n\t"
		"vmov lr, r12, q0[3], q0[1]\n\t"
		"vmov.32 r2, q6[0]\n\t"
		"ldrd r3, r6, [r11, #36]\n\t"
		"ldr r5, [r11, #44]\n"
		"9:\n\t"
		"strh r8, [r2]\n\t"
		"lsr r8, r8, #16\n\t"
		"cmp r5, #0\n\t"
		"it ne\n\t"
		"strhne r8, [r2, #2]\n\t"
		"add r2, r3\n\t"
		"mov r8, lr\n\t"
		"mov lr, r10\n\t"
		"mov r10, r12\n\t"
		"subs r6, #1\n\t"
		"bne 9b\n\t"
		"cmp r1, r4\n\t"
		"bne 1b\n\t"
		"b 50b\n\t");
	/* clang-format on */
#undef STEP
#undef LIMIT
}

/* The window at (top, left): where it is in the input, or a copy with zeros for its padding. */
static const int16_t *conv_mve_s16_gather(const struct tinyml_conv_dsp_s16 *p,
					  const struct conv_mve_s16_group *g, const int16_t *x,
					  int32_t top, int32_t left, int16_t *column)
{
	const struct tinyml_window *w = &p->window;

	const int16_t *const end = &x[w->in_h * w->in_w * w->in_c];

	x += g->first_in;
	if (g->straight && top >= 0 && left >= 0 &&
	    top + (w->kernel_h - 1) * w->dilation_h < w->in_h &&
	    left + (w->kernel_w - 1) * w->dilation_w < w->in_w) {
		const int16_t *const window = &x[(top * w->in_w + left) * w->in_c];

		/* what follows it meets weights of zero */
		if (end - window >= g->vectors * LANES) {
			return window;
		}
	}
	tinyml_copy_window_s16(w, x, top, left, g->in_c, column);
	return column;
}

/* The first outputs are at y. */
static inline void conv_mve_s16_place(struct conv_mve_s16_walk *walk, int16_t *y)
{
	const uint32x4_t first = vdupq_n_u32((uint32_t)(uintptr_t)y - 4);

	vst1q_u32(walk->outputs, vmlaq_n_u32(first, vidupq_n_u32(0, 1), (uint32_t)walk->step));
}

/* All filters of a group at the windows of a walk. */
static const int8_t *conv_mve_s16_apply(const struct tinyml_conv_dsp_s16 *p,
					const struct conv_mve_s16_group *g,
					struct conv_mve_s16_walk *walk, const int8_t *weights,
					int32_t first_out, int32_t out_c, int16_t *y)
{
	const int16_t *const end = walk->windows[0] + g->vectors * LANES;
	const int32_t shifts = p->shift != NULL ? SHIFTS : 0, even = out_c & ~1;

	walk->bias = &p->bias[first_out];
	walk->factor = &p->factor[first_out];
	walk->shift = shifts != 0 ? &p->shift[first_out] : NULL;
	walk->end = weights + even * g->vectors * LANES;
	conv_mve_s16_place(walk, &y[first_out]);
	walk->rare = shifts | (walk->count != WINDOWS ? SOME : 0);
	walk->both = 1;
	if (even > 0) {
		weights = conv_mve_s16_filters(weights, walk, end, g->skipped);
	}
	if (out_c != even) { /* nothing is read behind the tables */
		const int32_t last = first_out + even;
		const int32_t bias[2] = {p->bias[last], 0}, factor[2] = {p->factor[last], 0};
		const uint8_t shift[2] = {shifts != 0 ? p->shift[last] : 0, 1};

		walk->bias = bias;
		walk->factor = factor;
		walk->shift = shift;
		walk->end = weights + 2 * g->vectors * LANES;
		conv_mve_s16_place(walk, &y[last]);
		walk->rare = shifts | SOME;
		walk->both = 0;
		weights = conv_mve_s16_filters(weights, walk, end, g->skipped);
	}
	return weights;
}

/* Copies of narrow windows from a position on. Loads are limited to what lies inside the input, and
 * the rest of a vector is zeros: padding, or it lies in the next row, which is copied later. Two
 * rows are a vector or more, so nothing is written behind a window.
 */
__attribute__((noinline)) static void
conv_mve_s16_narrow(const struct tinyml_window *w, const struct conv_mve_s16_group *g,
		    const int16_t *x, int32_t row, int32_t col, struct conv_mve_s16_walk *walk)
{
	const int32_t line = w->dilation_h * w->in_w * w->in_c, run = w->kernel_w * w->in_c;
	const mve_pred16_t whole = vctp16q((uint32_t)run);
	int32_t top = row * w->stride_h - w->pad_top, left = col * w->stride_w - w->pad_left;
	int16_t *column = g->columns;

	for (int32_t j = 0; j < walk->count; j++, column += g->vectors * LANES) {
		const int16_t *from = &x[(top * w->in_w + left) * w->in_c];
		const int32_t after = w->in_w - left; /* of the input */
		int32_t count = w->kernel_h;
		mve_pred16_t inside = whole;
		int16_t *to = column;

		if (left < 0) {
			inside &= (mve_pred16_t)~vctp16q((uint32_t)(-left * w->in_c));
		}
		if (after < w->kernel_w) {
			inside &= vctp16q((uint32_t)(after > 0 ? after * w->in_c : 0));
		}
		if (top < 0 || top + (count - 1) * w->dilation_h >= w->in_h) {
			const struct tinyml_taps_s16 rows =
				tinyml_taps_s16(top, count, w->dilation_h, w->in_h);

			for (int32_t i = g->vectors; i > 0; i--, to += LANES) {
				vst1q_s16(to, vdupq_n_s16(0));
			}
			count = rows.count;
			from += rows.first * line;
			to = &column[rows.first * run];
		}
		for (; count > 1; count--, from += line, to += run) {
			vst1q_s16(to, vldrhq_z_s16(from, inside));
		}
		if (count == 1) {
			vstrhq_p_s16(to, vldrhq_z_s16(from, inside), whole);
		}
		walk->windows[j] = column;
		left += w->stride_w;
		col++;
		if (col == w->out_w) {
			col = 0;
			left = -w->pad_left;
			top += w->stride_h;
		}
	}
}

/* Whether `count` windows of a row, from `col` on, are in the input, and followed by enough of it.
 * If so, this says where they are.
 */
static inline bool conv_mve_s16_in_row(const struct tinyml_window *w,
				       const struct conv_mve_s16_group *g, const int16_t *x,
				       int32_t row, int32_t col, struct conv_mve_s16_walk *walk)
{
	const int32_t top = row * w->stride_h - w->pad_top;
	const int32_t left = col * w->stride_w - w->pad_left, step = w->stride_w * w->in_c;
	const int32_t last = left + (walk->count - 1) * w->stride_w;
	const int32_t start = (top * w->in_w + left) * w->in_c + g->first_in;

	if (top < 0 || top >= w->in_h || left < 0 || col + walk->count > w->out_w ||
	    last + w->kernel_w > w->in_w ||
	    start + (walk->count - 1) * step + g->vectors * LANES > w->in_h * w->in_w * w->in_c) {
		return false;
	}
	x += start;
	for (int32_t j = 0; j < WINDOWS; j++) {
		walk->windows[j] = j < walk->count ? &x[j * step] : x;
	}
	return true;
}

/* Where the windows from a position on are: those of four positions. */
static void conv_mve_s16_windows(const struct tinyml_conv_dsp_s16 *p,
				 const struct conv_mve_s16_group *g, const int16_t *x, int32_t at,
				 struct conv_mve_s16_walk *walk)
{
	const struct tinyml_window *w = &p->window;
	int32_t row, col;

	if (g->flat) {
		const int16_t *from = &x[at * w->in_c + g->first_in];

		for (int32_t j = 0; j < WINDOWS; j++) {
			walk->windows[j] = j < walk->count ? from : walk->windows[0];
			from += w->in_c;
		}
		return;
	}
	row = at / w->out_w;
	col = at - row * w->out_w;
	if (g->row && conv_mve_s16_in_row(w, g, x, row, col, walk)) {
		return;
	}
	if (g->narrow) {
		conv_mve_s16_narrow(w, g, x, row, col, walk);
	} else {
		for (int32_t j = 0; j < walk->count; j++) {
			walk->windows[j] =
				conv_mve_s16_gather(p, g, x, row * w->stride_h - w->pad_top,
						    col * w->stride_w - w->pad_left,
						    &g->columns[j * g->vectors * LANES]);
			col++;
			if (col == w->out_w) {
				col = 0;
				row++;
			}
		}
	}
	for (int32_t j = walk->count; j < WINDOWS; j++) {
		walk->windows[j] = walk->windows[0];
	}
}

void tinyml_conv_mve_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y,
			 void *scratch)
{
	tinyml_conv_steps_mve_s16(p, x, y, p->window.out_c, scratch);
}

void tinyml_conv_steps_mve_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y,
			       int32_t step, void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t positions = w->out_h * w->out_w, out_c = w->out_c / p->groups;
	struct conv_mve_s16_group g = {.in_c = w->in_c / p->groups, .columns = scratch};
	struct conv_mve_s16_walk walk; /* zeros for all of it would take longer */

	TINYML_ASSERT(w->in_c % p->groups == 0 && w->out_c % p->groups == 0);
	TINYML_ASSERT(TINYML_ALIGNED(scratch, 4));
	g.elements = w->kernel_h * w->kernel_w * g.in_c;
	g.vectors = (g.elements + LANES - 1) / LANES;
	/* A single tap; or taps that follow one another in the input. */
	g.row = w->kernel_h == 1 &&
		(g.elements == g.in_c || (p->groups == 1 && w->dilation_w == 1));
	g.straight = g.row || (p->groups == 1 && w->in_w == 1 && w->dilation_h == 1);
	g.flat = g.elements == g.in_c && g.elements % LANES == 0 && w->stride_h == 1 &&
		 w->stride_w == 1 && w->pad_top == 0 && w->pad_left == 0 && w->out_w == w->in_w &&
		 w->out_h <= w->in_h;
	g.narrow = !g.straight && w->dilation_w == 1 && p->groups == 1 &&
		   w->kernel_w * g.in_c <= LANES && 2 * w->kernel_w * g.in_c >= LANES;
	g.skipped = g.vectors == 1 ? TURN * VECTOR_BYTES + CHECK_BYTES
				   : ((1 - g.vectors) & (TURN - 1)) * VECTOR_BYTES;
	walk.step = 2 * step;
	vst1q_s16(walk.low, vdupq_n_s16(p->out_min));
	vst1q_s16(walk.high, vdupq_n_s16(p->out_max));
	for (int32_t n = 0; n < w->batches; n++) {
		const int8_t *weights = p->weights;

		for (int32_t i = 0; i < p->groups; i++) {
			const int8_t *next = weights;

			g.first_in = i * g.in_c;
			for (int32_t at = 0; at < positions; at += WINDOWS) {
				const int32_t left = positions - at;

				walk.count = left < WINDOWS ? left : WINDOWS;
				conv_mve_s16_windows(p, &g, x, at, &walk);
				next = conv_mve_s16_apply(p, &g, &walk, weights, i * out_c, out_c,
							  &y[at * step]);
			}
			weights = next;
		}
		x += w->in_h * w->in_w * w->in_c;
		y += positions * step;
	}
}

#endif /* TINYML_CORE_MVE */
