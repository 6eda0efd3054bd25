/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise convolutions with int16 activations and Helium: eight channels at a time, two outputs
 * of a line at once. The rows that a line of outputs meets are copied with their padding, so that
 * neighbours are sixteen bytes apart. */

#include <string.h>

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "../weighted/assembly.h"
#include "../weighted/mve_s16.h"

#define LANES    8
#define TAPS     3 /* of a row */
#define MOST     3 /* rows of taps */
#define TOGETHER 2 /* outputs */

/* What the walk over the outputs of a line reads. */
struct depthwise_strips_mve_s16_walk {
	const int16_t *rows[MOST]; /* these ten are read with one instruction */
	const int8_t *weights;
	const int32_t *bias;
	const int32_t *factor;
	const int8_t *shift;
	int16_t *y;
	int32_t step; /* bytes from an output to the next */
	int32_t pairs;
	int32_t odd;   /* 1: one more output */
	int32_t count; /* rows of taps */
	int32_t channels;
	int16_t low[LANES];
	int16_t high[LANES];
};
TINYML_OFFSET(struct depthwise_strips_mve_s16_walk, rows, 0);
TINYML_OFFSET(struct depthwise_strips_mve_s16_walk, weights, 12);
TINYML_OFFSET(struct depthwise_strips_mve_s16_walk, bias, 16);
TINYML_OFFSET(struct depthwise_strips_mve_s16_walk, factor, 20);
TINYML_OFFSET(struct depthwise_strips_mve_s16_walk, shift, 24);
TINYML_OFFSET(struct depthwise_strips_mve_s16_walk, y, 28);
TINYML_OFFSET(struct depthwise_strips_mve_s16_walk, step, 32);
TINYML_OFFSET(struct depthwise_strips_mve_s16_walk, pairs, 36);
TINYML_OFFSET(struct depthwise_strips_mve_s16_walk, odd, 40);
TINYML_OFFSET(struct depthwise_strips_mve_s16_walk, count, 44);
TINYML_OFFSET(struct depthwise_strips_mve_s16_walk, channels, 48);
TINYML_OFFSET(struct depthwise_strips_mve_s16_walk, low, 52);
TINYML_OFFSET(struct depthwise_strips_mve_s16_walk, high, 68);

/* The outputs of a line. Tables have the four even channels first. */
TINYML_ASSEMBLY static void
depthwise_strips_mve_s16_line(const struct depthwise_strips_mve_s16_walk *walk TINYML_UNSEEN)
{
	/* clang-format off */
	/* Eight inputs in q4 times eight weights in q5; `from` has the sums so far. */
#define PRODUCTS(even, odd, even_from, odd_from)                                                   \
	"vmullb.s16 q6, q4, q5\n\t"                                                                \
	"vmullt.s16 q7, q4, q5\n\t"                                                                \
	"vadd.i32 " even ", " even_from ", q6\n\t"                                                 \
	"vadd.i32 " odd ", " odd_from ", q7\n\t"
#define FIRST  PRODUCTS("q0", "q1", "q0", "q1")
#define SECOND PRODUCTS("q2", "q3", "q2", "q3")
	/* Four inputs of a row times three weights; the second output meets them one later. */
#define ROW(x, w0, w1, w2, first_of_all)                                                           \
	"vldrh.16 q4, [" x "], #32\n\t"                                                            \
	"vldrb.s16 q5, [r4, #" w0 "]\n\t"                                                          \
	first_of_all                                                                               \
	"vldrh.16 q4, [" x ", #-16]\n\t"                                                           \
	SECOND                                                                                     \
	"vldrb.s16 q5, [r4, #" w1 "]\n\t"                                                          \
	FIRST                                                                                      \
	"vldrh.16 q4, [" x "]\n\t"                                                                 \
	SECOND                                                                                     \
	"vldrb.s16 q5, [r4, #" w2 "]\n\t"                                                          \
	FIRST                                                                                      \
	"vldrh.16 q4, [" x ", #16]\n\t"                                                            \
	SECOND
	__asm__ volatile(
		"push {r4-r11, lr}\n\t"
		"vpush {d8-d15}\n\t"
		"ldm r0, {r1-r9, lr}\n\t"
		"ldrd r10, r11, [r0, #40]\n\t"
		"ldr r12, [r0, #48]\n\t"
		"vctp.16 r12\n\t"
		"cmp lr, #0\n\t"
		"beq 5f\n"
		"1:\n\t"
		"cmp r11, #2\n"
		"2:\n\t" /* two outputs: the flags say how many rows, and nothing changes them */
		"vldrw.u32 q2, [r5]\n\t"
		"vldrw.u32 q3, [r5, #16]\n\t"
		ROW("r1", "0", "8", "16", PRODUCTS("q0", "q1", "q2", "q3"))
		"blt 3f\n\t"
		ROW("r2", "24", "32", "40", FIRST)
		"beq 3f\n\t"
		ROW("r3", "48", "56", "64", FIRST)
		"3:\n\t"
		"vldrw.u32 q4, [r6]\n\t"
		"vldrw.u32 q5, [r6, #16]\n\t"
		"cbnz r7, 6f\n\t"
		"vqrdmulh.s32 q0, q0, q4\n\t"
		"vqrdmulh.s32 q1, q1, q5\n\t"
		"vqrdmulh.s32 q2, q2, q4\n\t"
		"vqrdmulh.s32 q3, q3, q5\n"
		"4:\n\t"
		"vqmovnb.s32 q0, q0\n\t"
		"vqmovnb.s32 q2, q2\n\t"
		"vldrh.16 q4, [r0, #52]\n\t"
		"vqmovnt.s32 q0, q1\n\t"
		"vqmovnt.s32 q2, q3\n\t"
		"vldrh.16 q5, [r0, #68]\n\t"
		"vmax.s16 q0, q0, q4\n\t"
		"vmax.s16 q2, q2, q4\n\t"
		"vmin.s16 q0, q0, q5\n\t"
		"vmin.s16 q2, q2, q5\n\t"
		"add r12, r8, r9\n\t"
		"vpst\n\t" /* a step of 0: the first one replaces the second */
		"vstrht.16 q2, [r12]\n\t"
		"vpst\n\t"
		"vstrht.16 q0, [r8]\n\t"
		"add r8, r12, r9\n\t"
		"le lr, 2b\n"
		"5:\n\t"
		"cmp r10, #0\n\t"
		"mov r10, #0\n\t"
		"mov r9, #0\n\t"
		"mov lr, #1\n\t"
		"bne 1b\n\t"
		"vpop {d8-d15}\n\t"
		"pop {r4-r11, pc}\n"
		"6:\n\t"
		"vqdmulh.s32 q0, q0, q4\n\t"
		"vqdmulh.s32 q2, q2, q4\n\t"
		"vldrb.s32 q4, [r7]\n\t"
		"vqdmulh.s32 q1, q1, q5\n\t"
		"vqdmulh.s32 q3, q3, q5\n\t"
		"vldrb.s32 q5, [r7, #4]\n\t"
		"vrshl.s32 q0, q0, q4\n\t"
		"vrshl.s32 q2, q2, q4\n\t"
		"vrshl.s32 q1, q1, q5\n\t"
		"vrshl.s32 q3, q3, q5\n\t"
		"b 4b\n\t");
	/* clang-format on */
#undef PRODUCTS
#undef FIRST
#undef SECOND
#undef ROW
}

struct depthwise_strips_mve_s16 {
	int16_t *zeros; /* a row of padding, and after it those that are copied */
	int32_t width;  /* elements of a row */
	int32_t slots;
	int32_t x_step; /* elements of the input from one position of a line to the next */
	int32_t x_line; /* from one line to the next */
	int32_t left;   /* elements of padding before a line */
	int32_t inside; /* positions of the input that are copied */
};

/* Copy a line of eight channels, or of as many as there are. */
static void depthwise_strips_mve_s16_copy(const struct depthwise_strips_mve_s16 *s,
					  const int16_t *from, int32_t channels, int16_t *to)
{
	const mve_pred16_t some = vctp16q((uint32_t)channels);

	if (channels >= LANES) {
		for (int32_t i = s->inside; i > 0; i--, from += s->x_step, to += LANES) {
			vst1q_s16(to, vld1q_s16(from));
		}
		return;
	}
	for (int32_t i = s->inside; i > 0; i--, from += s->x_step, to += LANES) {
		vst1q_s16(to, vldrhq_z_s16(from, some));
	}
}

/* All outputs of the channels that the walk has. */
static void depthwise_strips_mve_s16_strip(const struct depthwise_strips_mve_s16 *s,
					   struct depthwise_strips_mve_s16_walk *walk,
					   const struct tinyml_window *w, const int16_t *x,
					   int16_t *y, int32_t y_line)
{
	int32_t next = 0; /* line of the input to copy */

	for (int32_t i = 0; i < w->out_h; i++, y += y_line) {
		const int32_t first = i * w->stride_h - w->pad_top;
		const int32_t last = first + (w->kernel_h - 1) * w->dilation_h;

		next = next < first ? first : next;
		for (; next <= last && next < w->in_h; next++) {
			depthwise_strips_mve_s16_copy(
				s, &x[next * s->x_line], walk->channels,
				&s->zeros[(1 + next % s->slots) * s->width + s->left]);
		}
		for (int32_t j = 0; j < w->kernel_h; j++) {
			const int32_t line = first + j * w->dilation_h;
			const bool inside = line >= 0 && line < w->in_h;

			walk->rows[j] = &s->zeros[inside ? (1 + line % s->slots) * s->width : 0];
		}
		walk->y = y;
		depthwise_strips_mve_s16_line(walk);
	}
}

void tinyml_depthwise_strips_mve_s16(const struct tinyml_depthwise_strips_mve_s16 *p,
				     const int16_t *x, int16_t *y, void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const bool turned = p->transposed;
	const int32_t channels = w->in_c, even = (w->out_w + 1) & ~1;
	const int32_t y_line = turned ? channels : w->out_w * channels;
	const int32_t room = even + TAPS - 1 - w->pad_left;
	const struct depthwise_strips_mve_s16 s = {
		.zeros = scratch,
		.width = (even + TAPS - 1) * LANES,
		.slots = (w->kernel_h - 1) * w->dilation_h + 1,
		.x_step = turned ? w->in_h * channels : channels,
		.x_line = turned ? channels : w->in_w * channels,
		.left = w->pad_left * LANES,
		.inside = room < w->in_w ? room : w->in_w,
	};
	struct depthwise_strips_mve_s16_walk walk = {
		.step = 2 * (turned ? w->out_h * channels : channels),
		.pairs = w->out_w / TOGETHER,
		.odd = w->out_w % TOGETHER,
		.count = w->kernel_h,
	};

	TINYML_ASSERT(w->in_c == w->out_c && w->kernel_w <= TAPS && w->kernel_h <= MOST &&
		      w->stride_w == 1 && w->dilation_w == 1 && TINYML_ALIGNED(scratch, 4));
	vst1q_s16(walk.low, vdupq_n_s16(p->out_min));
	vst1q_s16(walk.high, vdupq_n_s16(p->out_max));
	memset(s.zeros, 0, 2 * (size_t)((1 + s.slots) * s.width));
	for (int32_t n = 0; n < w->batches; n++) {
		walk.weights = p->weights;
		for (int32_t c = 0; c < channels; c += LANES) {
			walk.channels = channels - c;
			walk.bias = &p->bias[c];
			walk.factor = &p->factor[c];
			walk.shift = p->shift != NULL ? &p->shift[c] : NULL;
			depthwise_strips_mve_s16_strip(&s, &walk, w, &x[c], &y[c], y_line);
			walk.weights += w->kernel_h * TAPS * LANES;
		}
		x += w->in_h * w->in_w * channels;
		y += w->out_h * w->out_w * channels;
	}
}

#endif /* TINYML_CORE_MVE */
