/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise convolutions with int16 activations and DSP instructions: channel by channel, four
 * outputs of a line at a time. A channel is copied into a plane with its padding, where two
 * neighbours are a word. */

#include <string.h>

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include "../weighted/dsp_s16.h"

struct depthwise_planes_dsp_s16 {
	int16_t *at;
	int32_t height; /* as far as windows reach */
	int32_t width;
	int32_t x_step; /* elements of the input from one of a line to the next */
	int32_t x_line; /* from one line to the next */
	bool eights;    /* outputs of a line are computed eight at a time */
};

/* What the walk of a channel reads. */
struct depthwise_planes_dsp_s16_walk {
	const uint32_t *taps; /* these four are read with one instruction */
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

/* Copy the channel that starts at x. */
static void depthwise_planes_dsp_s16_fill(const struct depthwise_planes_dsp_s16 *plane,
					  const struct tinyml_window *w, const int16_t *x)
{
	const int32_t rows = depthwise_planes_dsp_s16_min(w->in_h, plane->height - w->pad_top);
	const int32_t cols = depthwise_planes_dsp_s16_min(w->in_w, plane->width - w->pad_left);
	const int32_t step = plane->x_step;
	int16_t *to = &plane->at[w->pad_top * plane->width + w->pad_left];

	for (int32_t row = 0; row < rows; row++, x += plane->x_line, to += plane->width) {
		const int16_t *from = x;
		int16_t *next = to, *end = to + cols;

		for (; end - next >= 4; next += 4) {
			next[0] = *from;
			from += step;
			next[1] = *from;
			from += step;
			next[2] = *from;
			from += step;
			next[3] = *from;
			from += step;
		}
		for (; next < end; from += step) {
			*next++ = *from;
		}
	}
}

/* The taps of a channel, two in a word: 0 1 and 1 2 of each row, 0 for missing ones. */
static void depthwise_planes_dsp_s16_widen(const struct tinyml_window *w, const int8_t *weights,
					   int16_t *to)
{
	const int32_t taps = w->kernel_w;

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

#define EIGHT 8

/* What the walk over eight outputs at a time of a channel reads: kernels of three rows, and factors
 * that need no shift. */
struct depthwise_planes_dsp_s16_eights {
	const uint32_t *taps; /* two are read with one instruction, as the following ones */
	int32_t bias;
	int16_t *y;
	int32_t step; /* bytes from one output of a line to the next */
	int32_t left; /* outputs of a line */
	int32_t factor;
	int32_t limits; /* 0: negative outputs become 0, and the others are not limited */
	uint32_t low;   /* in both halves of the word */
	uint32_t high;
};

TINYML_OFFSET(struct depthwise_planes_dsp_s16_eights, taps, 0);
TINYML_OFFSET(struct depthwise_planes_dsp_s16_eights, bias, 4);
TINYML_OFFSET(struct depthwise_planes_dsp_s16_eights, y, 8);
TINYML_OFFSET(struct depthwise_planes_dsp_s16_eights, step, 12);
TINYML_OFFSET(struct depthwise_planes_dsp_s16_eights, left, 16);
TINYML_OFFSET(struct depthwise_planes_dsp_s16_eights, factor, 20);
TINYML_OFFSET(struct depthwise_planes_dsp_s16_eights, limits, 24);
TINYML_OFFSET(struct depthwise_planes_dsp_s16_eights, low, 28);
TINYML_OFFSET(struct depthwise_planes_dsp_s16_eights, high, 32);

/* The outputs of a line in whole eights, of which there is one. `down` is the bytes of the plane
 * from a row of taps to the next, `back` those from the last row to the first of the next eight.
 */
TINYML_ASSEMBLY static void
depthwise_planes_dsp_s16_in_eights(const int16_t *x TINYML_UNSEEN, int32_t down TINYML_UNSEEN,
				   int32_t back TINYML_UNSEEN,
				   struct depthwise_planes_dsp_s16_eights *walk TINYML_UNSEEN)
{
	/* clang-format off */
	/* A row of taps: w0 w1 in r2, w1 w2 in r3. The sums so far are in these registers. */
#define ROW(a, b, c, d, e, f, g, h)                                                                \
	"ldrd r2, r3, [r1], #8\n\t"                                                                \
	"ldrd r12, lr, [r0]\n\t"                                                                   \
	"smlad r4, r2, r12, " a "\n\t"                                                             \
	"smlabt r5, r2, r12, " b "\n\t"                                                            \
	"smlad r6, r2, lr, " c "\n\t"                                                              \
	"smlabt r7, r2, lr, " d "\n\t"                                                             \
	"smlatb r4, r3, lr, r4\n\t"                                                                \
	"smlad r5, r3, lr, r5\n\t"                                                                 \
	"ldrd r12, lr, [r0, #8]\n\t"                                                               \
	"smlatb r6, r3, r12, r6\n\t"                                                               \
	"smlad r7, r3, r12, r7\n\t"                                                                \
	"smlad r8, r2, r12, " e "\n\t"                                                             \
	"smlabt r9, r2, r12, " f "\n\t"                                                            \
	"smlad r10, r2, lr, " g "\n\t"                                                             \
	"smlabt r11, r2, lr, " h "\n\t"                                                            \
	"ldr r12, [r0, #16]\n\t"                                                                   \
	"smlatb r8, r3, lr, r8\n\t"                                                                \
	"smlad r9, r3, lr, r9\n\t"                                                                 \
	"smlatb r10, r3, r12, r10\n\t"                                                             \
	"smlad r11, r3, r12, r11\n\t"
#define SAME ROW("r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11")
#define BIAS ROW("r11", "r11", "r11", "r11", "r11", "r11", "r11", "r11")
#define ALL(what, more)                                                                            \
	what " r4, " more "r4\n\t"                                                                 \
	what " r5, " more "r5\n\t"                                                                 \
	what " r6, " more "r6\n\t"                                                                 \
	what " r7, " more "r7\n\t"                                                                 \
	what " r8, " more "r8\n\t"                                                                 \
	what " r9, " more "r9\n\t"                                                                 \
	what " r10, " more "r10\n\t"                                                               \
	what " r11, " more "r11\n\t"
	/* Lower halves of all are what is limited. */
#define CLAMP(sum)                                                                                 \
	"ssub16 r12, " sum ", r1\n\t"                                                              \
	"sel " sum ", " sum ", r1\n\t"                                                             \
	"ssub16 r12, r2, " sum "\n\t"                                                              \
	"sel " sum ", " sum ", r2\n\t"
	__asm__ volatile(
		"push {r1-r11, lr}\n\t"
		"mov lr, r3\n"
		"1:\n\t" /* eight outputs */
		"ldrd r1, r11, [lr]\n\t"
		BIAS
		"ldr r12, [sp]\n\t"
		"add r0, r12\n\t"
		SAME
		"ldr r12, [sp]\n\t"
		"add r0, r12\n\t"
		SAME
		"ldr lr, [sp, #8]\n\t"
		"ldr r12, [sp, #4]\n\t"
		"ldrd r3, r1, [lr, #16]\n\t"
		"add r0, r12\n\t"
		"ldr r2, [lr, #24]\n\t"
		ALL("smmulr", "r1, ")
		"cbnz r2, 3f\n\t"
		ALL("usat", "#15, ")
		"2:\n\t"
		"ldrd r1, r2, [lr, #8]\n\t"
		"subs r3, #8\n\t"
		"strh r4, [r1]\n\t"
		"strh r5, [r1, r2]\n\t"
		"add r1, r1, r2, lsl #1\n\t"
		"strh r6, [r1]\n\t"
		"strh r7, [r1, r2]\n\t"
		"strh r8, [r1, r2, lsl #1]\n\t"
		"add r1, r1, r2, lsl #2\n\t"
		"strh r10, [r1]\n\t"
		"strh r11, [r1, r2]\n\t"
		"add r12, r1, r2, lsl #1\n\t"
		"sub r1, r1, r2\n\t"
		"strh r9, [r1]\n\t"
		"str r12, [lr, #8]\n\t"
		"str r3, [lr, #16]\n\t"
		"cmp r3, #8\n\t"
		"bge 1b\n\t"
		"add sp, #12\n\t"
		"pop {r4-r11, pc}\n"
		"3:\n\t"
		"ldrd r1, r2, [lr, #28]\n\t"
		ALL("ssat", "#16, ")
		CLAMP("r4")
		CLAMP("r5")
		CLAMP("r6")
		CLAMP("r7")
		CLAMP("r8")
		CLAMP("r9")
		CLAMP("r10")
		CLAMP("r11")
		"b 2b\n\t");
	/* clang-format on */
#undef ROW
#undef SAME
#undef BIAS
#undef ALL
#undef CLAMP
}

/* A line of outputs: eight at a time as far as that is possible, and the others. */
static void depthwise_planes_dsp_s16_walk_line(const int16_t *line,
					       const struct depthwise_planes_dsp_s16 *plane,
					       struct depthwise_planes_dsp_s16_walk *walk,
					       struct depthwise_planes_dsp_s16_eights *eights)
{
	if (plane->eights && walk->left >= EIGHT) {
		eights->y = walk->y;
		eights->left = walk->left;
		depthwise_planes_dsp_s16_in_eights(line, walk->down, 16 - 2 * walk->down, eights);
		if (eights->left == 0) {
			return;
		}
		line += walk->left - eights->left;
		walk->y = eights->y;
		walk->left = eights->left;
	}
	depthwise_planes_dsp_s16_line(line, walk);
}

void tinyml_depthwise_planes_dsp_s16(const struct tinyml_depthwise_planes_dsp_s16 *p,
				     const int16_t *x, int16_t *y, void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const bool turned = p->transposed, whole = p->out_min == 0 && p->out_max == INT16_MAX;
	const int32_t channels = w->in_c;
	const int32_t y_line = turned ? channels : w->out_w * channels;
	uint32_t *const taps = scratch;
	const struct depthwise_planes_dsp_s16 plane = {
		.at = (int16_t *)&taps[2 * w->kernel_h],
		.height = (w->kernel_h - 1) * w->dilation_h + (w->out_h - 1) * w->stride_h + 1,
		.width = (w->kernel_w + w->out_w) & ~1,
		.x_step = turned ? w->in_h * channels : channels,
		.x_line = turned ? channels : w->in_w * channels,
		.eights = p->shift == NULL && w->kernel_h == 3,
	};
	struct depthwise_planes_dsp_s16_walk walk = {
		.taps = taps,
		.down = 2 * w->dilation_h * plane.width,
		.rows = w->kernel_h,
		.step = 2 * (turned ? w->out_h * channels : channels),
		.low = whole ? INT32_MIN : p->out_min,
		.high = p->out_max,
	};
	struct depthwise_planes_dsp_s16_eights eights = {
		.taps = taps,
		.step = walk.step,
		.limits = !whole,
		.low = (uint16_t)p->out_min * UINT32_C(0x10001),
		.high = (uint16_t)p->out_max * UINT32_C(0x10001),
	};

	TINYML_ASSERT(w->in_c == w->out_c && w->kernel_w <= 3 && w->stride_w == 1 &&
		      w->dilation_w == 1 && TINYML_ALIGNED(scratch, 4));
	memset(plane.at, 0, 2 * (size_t)(plane.height * plane.width));
	for (int32_t n = 0; n < w->batches; n++) {
		const int8_t *weights = p->weights;

		for (int32_t i = 0; i < channels; i++, weights += w->kernel_h * w->kernel_w) {
			const int16_t *line = plane.at;

			depthwise_planes_dsp_s16_fill(&plane, w, &x[i]);
			depthwise_planes_dsp_s16_widen(w, weights, (int16_t *)taps);
			walk.bias = p->bias[i];
			walk.factor = p->factor[i];
			if (p->shift != NULL) {
				walk.shift = p->shift[i];
			} else { /* below 2^30 */
				eights.bias = walk.bias;
				eights.factor = walk.factor;
				walk.factor *= 2;
				walk.shift = 1;
			}
			walk.half = INT32_C(1) << (walk.shift - 1);
			for (int32_t row = 0; row < w->out_h; row++) {
				walk.y = &y[i + row * y_line];
				walk.left = w->out_w;
				depthwise_planes_dsp_s16_walk_line(line, &plane, &walk, &eights);
				line += w->stride_h * plane.width;
			}
		}
		x += w->in_h * w->in_w * channels;
		y += w->out_h * w->out_w * channels;
	}
}

#endif /* TINYML_CORE_DSP */
