/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise convolutions with int16 activations and DSP instructions: channel by channel. A channel
 * is copied into a plane with its padding, where two neighbours are a word. */

#include <string.h>

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include "../weighted/dsp_s16.h"
#include "depthwise_lines_dsp_s16.h"

struct depthwise_planes_dsp_s16 {
	int16_t *at;
	int32_t height; /* as far as windows reach */
	int32_t other;  /* elements from it to the plane of a second channel, or 0 */
	int32_t width;
	int32_t x_step; /* elements of the input from one of a line to the next */
	int32_t x_line; /* from one line to the next */
};

/* What the walk of a channel reads. */
struct depthwise_planes_dsp_s16_walk {
	int16_t *taps; /* these four are read with one instruction */
	int32_t bias;
	int32_t down;   /* bytes of the plane from a row of taps to the next */
	int32_t rows;   /* of taps */
	int32_t factor; /* and these six */
	int32_t half;   /* what is added to round */
	int32_t shift;
	int32_t step; /* bytes from one output of a line to the next */
	int16_t *y;
	int32_t left; /* outputs of a line */
	int32_t low;  /* INT32_MIN: negative outputs become 0, and the others are not limited */
	int32_t high;
};

TINYML_OFFSET(struct depthwise_planes_dsp_s16_walk, taps, 0);
TINYML_OFFSET(struct depthwise_planes_dsp_s16_walk, bias, 4);
TINYML_OFFSET(struct depthwise_planes_dsp_s16_walk, down, 8);
TINYML_OFFSET(struct depthwise_planes_dsp_s16_walk, rows, 12);
TINYML_OFFSET(struct depthwise_planes_dsp_s16_walk, factor, 16);
TINYML_OFFSET(struct depthwise_planes_dsp_s16_walk, half, 20);
TINYML_OFFSET(struct depthwise_planes_dsp_s16_walk, shift, 24);
TINYML_OFFSET(struct depthwise_planes_dsp_s16_walk, step, 28);
TINYML_OFFSET(struct depthwise_planes_dsp_s16_walk, y, 32);
TINYML_OFFSET(struct depthwise_planes_dsp_s16_walk, left, 36);
TINYML_OFFSET(struct depthwise_planes_dsp_s16_walk, low, 40);
TINYML_OFFSET(struct depthwise_planes_dsp_s16_walk, high, 44);

static int32_t depthwise_planes_dsp_s16_min(int32_t a, int32_t b)
{
	return a < b ? a : b;
}

/* Copy the channel that starts at x, and the following one if there are two planes. */
static void depthwise_planes_dsp_s16_fill(const struct depthwise_planes_dsp_s16 *plane,
					  const struct tinyml_window *w, const int16_t *x)
{
	const int32_t rows = depthwise_planes_dsp_s16_min(w->in_h, plane->height - w->pad_top);
	const int32_t cols = depthwise_planes_dsp_s16_min(w->in_w, plane->width - w->pad_left);
	int16_t *to = &plane->at[w->pad_top * plane->width + w->pad_left];

	if (plane->other != 0) {
		const struct depthwise_lines_dsp_s16_copied copied = {
			.to = to,
			.other = to + plane->other,
			.from = x,
			.step = 2 * plane->x_step,
			.count = cols,
			.lines = rows,
			.gap = 2 * (plane->width - cols),
			.x_line = 2 * plane->x_line,
		};

		if (rows > 0 && cols > 0) {
			depthwise_lines_dsp_s16_copy_two(&copied);
		}
		return;
	}
	for (int32_t row = 0; row < rows; row++, x += plane->x_line, to += plane->width) {
		depthwise_lines_dsp_s16_copy(to, x, 2 * plane->x_step, cols);
	}
}

/* The taps of a channel, two in a word: 0 1 and 1 2 of each row, 0 for missing ones. */
static void depthwise_planes_dsp_s16_widen(const struct tinyml_window *w, const int8_t *weights,
					   int16_t *to)
{
	const int32_t taps = w->kernel_w;

	if (taps == 3) {
		for (int32_t ky = w->kernel_h; ky > 0; ky--, weights += 3, to += 4) {
			const int32_t middle = weights[1];

			to[0] = weights[0];
			to[1] = (int16_t)middle;
			to[2] = (int16_t)middle;
			to[3] = weights[2];
		}
		return;
	}
	for (int32_t ky = 0; ky < w->kernel_h; ky++, weights += taps, to += 4) {
		to[0] = weights[0];
		to[1] = taps > 1 ? weights[1] : 0;
		to[2] = to[1];
		to[3] = taps > 2 ? weights[2] : 0;
	}
}

/* The outputs of a line, four at a time. */
TINYML_ASSEMBLY static void
depthwise_planes_dsp_s16_line(const int16_t *x TINYML_UNSEEN,
			      struct depthwise_planes_dsp_s16_walk *walk TINYML_UNSEEN)
{
	/* clang-format off */
#define OUTPUT(sum)                                                                                \
	"smmla " sum ", " sum ", r1, r2\n\t"                                                       \
	"asr " sum ", " sum ", r3\n\t"
#define CLAMP(sum)                                                                                 \
	"cmp " sum ", r11\n\t"                                                                     \
	"it lt\n\t"                                                                                \
	"movlt " sum ", r11\n\t"                                                                   \
	"cmp " sum ", r12\n\t"                                                                     \
	"it gt\n\t"                                                                                \
	"movgt " sum ", r12\n\t"
	__asm__ volatile(
		"push {r4-r11, lr}\n\t"
		"add lr, r1, #16\n"
		"1:\n\t" /* four outputs */
		"ldmdb lr, {r1, r4, r10, r11}\n\t"
		"mov r5, r4\n\t"
		"mov r6, r4\n\t"
		"mov r7, r4\n\t"
		"mov r12, r0\n"
		"2:\n\t" /* a row of taps: w0 w1 in r2, w1 w2 in r3 */
		"ldr r8, [r12]\n\t"
		"ldr r9, [r12, #4]\n\t"
		"ldrd r2, r3, [r1], #8\n\t"
		"smlad r4, r2, r8, r4\n\t"
		"smlabt r5, r2, r8, r5\n\t"
		"smlad r6, r2, r9, r6\n\t"
		"smlabt r7, r2, r9, r7\n\t"
		"ldr r8, [r12, #8]\n\t"
		"smlatb r4, r3, r9, r4\n\t"
		"smlad r5, r3, r9, r5\n\t"
		"smlatb r6, r3, r8, r6\n\t"
		"smlad r7, r3, r8, r7\n\t"
		"add r12, r10\n\t"
		"subs r11, #1\n\t"
		"bne 2b\n\t"
		"ldrd r11, r12, [lr, #24]\n\t"
		"ldmia lr, {r1, r2, r3, r8, r9, r10}\n\t"
		"cmp r11, #0x80000000\n\t"
		OUTPUT("r4")
		OUTPUT("r5")
		OUTPUT("r6")
		OUTPUT("r7")
		"bne 5f\n\t"
		"usat r4, #15, r4\n\t"
		"usat r5, #15, r5\n\t"
		"usat r6, #15, r6\n\t"
		"usat r7, #15, r7\n"
		"3:\n\t"
		"subs r10, #4\n\t"
		"blt 4f\n\t"
		"strh r4, [r9]\n\t"
		"strh r5, [r9, r8]\n\t"
		"add r9, r9, r8, lsl #1\n\t"
		"strh r6, [r9]\n\t"
		"strh r7, [r9, r8]\n\t"
		"add r9, r9, r8, lsl #1\n\t"
		"strd r9, r10, [lr, #16]\n\t"
		"add r0, #8\n\t"
		"bne 1b\n\t"
		"pop {r4-r11, pc}\n"
		"4:\n\t" /* one to three outputs are left */
		"strh r4, [r9]\n\t"
		"adds r10, #2\n\t"
		"it ge\n\t"
		"strhge r5, [r9, r8]\n\t"
		"it gt\n\t"
		"strhgt r6, [r9, r8, lsl #1]\n\t"
		"pop {r4-r11, pc}\n"
		"5:\n\t"
		CLAMP("r4")
		CLAMP("r5")
		CLAMP("r6")
		CLAMP("r7")
		"b 3b\n\t");
	/* clang-format on */
#undef OUTPUT
#undef CLAMP
}

/* The outputs of channel i, which is at `line`: all lines in one call, or one by one. */
static void depthwise_planes_dsp_s16_channel(const struct tinyml_depthwise_planes_dsp_s16 *p,
					     const int16_t *line, int16_t *y, int32_t i,
					     struct depthwise_lines_dsp_s16 *all,
					     struct depthwise_planes_dsp_s16_walk *walk)
{
	const struct tinyml_window *w = &p->window;
	const int8_t *const weights = &p->weights[i * w->kernel_h * w->kernel_w];

	if (p->shift == NULL && w->kernel_h == 3) {
		depthwise_planes_dsp_s16_widen(w, weights, (int16_t *)all->taps);
		all->bias = p->bias[i];
		all->factor = p->factor[i];
		all->line = line;
		all->y = &y[i];
		depthwise_lines_dsp_s16(all);
		return;
	}
	depthwise_planes_dsp_s16_widen(w, weights, walk->taps);
	walk->bias = p->bias[i];
	/* without a shift, a factor is below 2^30 */
	walk->factor = p->shift != NULL ? p->factor[i] : 2 * p->factor[i];
	walk->shift = p->shift != NULL ? p->shift[i] : 1;
	walk->half = INT32_C(1) << (walk->shift - 1);
	for (int32_t row = 0; row < w->out_h; row++, line += all->x_line / 2) {
		walk->y = &y[i + row * (all->y_line / 2)];
		walk->left = w->out_w;
		depthwise_planes_dsp_s16_line(line, walk);
	}
}

void tinyml_depthwise_planes_dsp_s16(const struct tinyml_depthwise_planes_dsp_s16 *p,
				     const int16_t *x, int16_t *y, void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const bool turned = p->transposed, whole = p->out_min == 0 && p->out_max == INT16_MAX;
	const int32_t channels = w->in_c;
	const int32_t x_step = turned ? w->in_h * channels : channels;
	const int32_t width = (w->kernel_w + w->out_w) & ~1;
	const int32_t height = (w->kernel_h - 1) * w->dilation_h + (w->out_h - 1) * w->stride_h + 1;
	const bool two = channels % 2 == 0 && channels >= TINYML_PLANES_S16_CHANNELS;
	const struct depthwise_planes_dsp_s16 plane = {
		.at = (int16_t *)((uint32_t *)scratch + 2 * w->kernel_h),
		.height = height,
		.other = two ? height * width : 0,
		.width = width,
		.x_step = x_step,
		.x_line = turned ? channels : w->in_w * channels,
	};
	struct depthwise_planes_dsp_s16_walk walk = {
		.taps = scratch,
		.down = 2 * w->dilation_h * width,
		.rows = w->kernel_h,
		.step = 2 * (turned ? w->out_h * channels : channels),
		.low = whole ? INT32_MIN : p->out_min,
		.high = p->out_max,
	};
	struct depthwise_lines_dsp_s16 all = {
		.step = walk.step,
		.eights = w->out_w / 8 * 16,
		.down = walk.down,
		.x_line = 2 * w->stride_h * width,
		.y_line = 2 * (turned ? channels : w->out_w * channels),
		.lines = w->out_h,
		.rest = w->out_w % 8,
		.limits = !whole,
		.low = (uint16_t)p->out_min * UINT32_C(0x10001),
		.high = (uint16_t)p->out_max * UINT32_C(0x10001),
	};

	TINYML_ASSERT(w->in_c == w->out_c && w->kernel_w <= 3 && w->stride_w == 1 &&
		      w->dilation_w == 1 && TINYML_ALIGNED(scratch, 4));
	memset(plane.at, 0, (two ? 4 : 2) * (size_t)(height * width));
	for (int32_t n = 0; n < w->batches; n++) {
		for (int32_t i = 0; i < channels; i++) {
			depthwise_planes_dsp_s16_fill(&plane, w, &x[i]);
			depthwise_planes_dsp_s16_channel(p, plane.at, y, i, &all, &walk);
			if (two) {
				i++;
				depthwise_planes_dsp_s16_channel(p, plane.at + plane.other, y, i,
								 &all, &walk);
			}
		}
		x += w->in_h * w->in_w * channels;
		y += w->out_h * w->out_w * channels;
	}
}

#endif /* TINYML_CORE_DSP */
