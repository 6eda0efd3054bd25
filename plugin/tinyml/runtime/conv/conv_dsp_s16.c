/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions with int16 activations and DSP instructions: four windows, side by side in columns,
 * meet two filters at a time. A word has two elements of both filters. */

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include "../weighted/dsp_s16.h"
#include "window_s16.h"

#define WINDOWS 4

struct conv_dsp_s16_group {
	int32_t first_in;
	int32_t in_c;
	int32_t elements; /* of a filter */
	int32_t padded;   /* up to a multiple of four */
	uint32_t *columns;
	int16_t *window; /* one that is collected first */
};

/* What the loop over pairs of filters reads and keeps. */
struct conv_dsp_s16_walk {
	const uint32_t *columns;
	const int32_t *bias;
	const int32_t *factor;
	const uint8_t *shift;
	int16_t *y;
	int32_t step;  /* bytes of the output from a position to the next */
	uint32_t low;  /* in both halves of the word */
	uint32_t high; /* 0: negative outputs become 0, and the others are not limited */
	int32_t pairs;
	int32_t some;  /* 1: not all outputs of four positions and of both filters are written */
	int32_t count; /* of positions */
	int32_t both;  /* 0: a single filter, whose pair is zeros */
};
TINYML_OFFSET(struct conv_dsp_s16_walk, columns, 0);
TINYML_OFFSET(struct conv_dsp_s16_walk, bias, 4);
TINYML_OFFSET(struct conv_dsp_s16_walk, factor, 8);
TINYML_OFFSET(struct conv_dsp_s16_walk, shift, 12);
TINYML_OFFSET(struct conv_dsp_s16_walk, y, 16);
TINYML_OFFSET(struct conv_dsp_s16_walk, step, 20);
TINYML_OFFSET(struct conv_dsp_s16_walk, low, 24);
TINYML_OFFSET(struct conv_dsp_s16_walk, high, 28);
TINYML_OFFSET(struct conv_dsp_s16_walk, pairs, 32);
TINYML_OFFSET(struct conv_dsp_s16_walk, some, 36);
TINYML_OFFSET(struct conv_dsp_s16_walk, count, 40);
TINYML_OFFSET(struct conv_dsp_s16_walk, both, 44);

/* The outputs of pairs of filters at up to four windows. Returns what follows the weights. */
TINYML_ASSEMBLY static const uint32_t *
conv_dsp_s16_filters(const uint32_t *weights TINYML_UNSEEN, const uint32_t *end TINYML_UNSEEN,
		     struct conv_dsp_s16_walk *walk TINYML_UNSEEN)
{
	/* clang-format off */
#define STEP                                                                                       \
	"ldr r2, [r0], #4\n\t"                                                                     \
	"ldrd r12, lr, [r1], #8\n\t"                                                               \
	"sxtb16 r3, r2, ror #8\n\t"                                                                \
	"sxtb16 r2, r2\n\t"                                                                        \
	"smlad r4, r2, r12, r4\n\t"                                                                \
	"smlad r8, r3, r12, r8\n\t"                                                                \
	"smlad r5, r2, lr, r5\n\t"                                                                 \
	"smlad r9, r3, lr, r9\n\t"                                                                 \
	"ldrd r12, lr, [r1], #8\n\t"                                                               \
	"smlad r6, r2, r12, r6\n\t"                                                                \
	"smlad r10, r3, r12, r10\n\t"                                                              \
	"smlad r7, r2, lr, r7\n\t"                                                                 \
	"smlad r11, r3, lr, r11\n\t"
	/* The sums of a filter with its factor; the shift is in the lowest byte of r12. */
#define SCALE(factor, a, b, c, d)                                                                  \
	"mov r3, #1\n\t"                                                                           \
	"lsl r3, r3, r12\n\t"                                                                      \
	"lsr r3, r3, #1\n\t"                                                                       \
	"smmla " a ", " a ", " factor ", r3\n\t"                                                   \
	"smmla " b ", " b ", " factor ", r3\n\t"                                                   \
	"smmla " c ", " c ", " factor ", r3\n\t"                                                   \
	"smmla " d ", " d ", " factor ", r3\n\t"                                                   \
	"asr " a ", " a ", r12\n\t"                                                                \
	"asr " b ", " b ", r12\n\t"                                                                \
	"asr " c ", " c ", r12\n\t"                                                                \
	"asr " d ", " d ", r12\n\t"
	/* Two outputs become a word. */
#define LIMIT(saturate, bits, a, b)                                                                \
	saturate " " a ", #" bits ", " a "\n\t"                                                    \
	saturate " " b ", #" bits ", " b "\n\t"                                                    \
	"pkhbt " a ", " a ", " b ", lsl #16\n\t"
#define CLAMP(two)                                                                                 \
	"ssub16 r3, " two ", r1\n\t"                                                               \
	"sel " two ", " two ", r1\n\t"                                                             \
	"ssub16 r3, r2, " two "\n\t"                                                               \
	"sel " two ", " two ", r2\n\t"
	__asm__ volatile(
		"push {r1, r2, r4-r11, lr}\n"
		"1:\n\t" /* a pair of filters */
		"ldr lr, [sp, #4]\n\t"
		"ldrd r1, r2, [lr]\n\t"
		"ldrd r4, r8, [r2], #8\n\t"
		"str r2, [lr, #4]\n\t"
		"mov r5, r4\n\t"
		"mov r6, r4\n\t"
		"mov r7, r4\n\t"
		"mov r9, r8\n\t"
		"mov r10, r8\n\t"
		"mov r11, r8\n\t"
		"ldr r12, [sp]\n\t"
		"subs r12, r12, r1\n\t"
		"lsls r12, r12, #26\n\t" /* four elements are 32 bytes: enter in the middle */
		"bmi 3f\n"
		"2:\n\t"
		STEP
		STEP
		"3:\n\t"
		STEP
		STEP
		"ldr r12, [sp]\n\t"
		"cmp r1, r12\n\t"
		"bne 2b\n\t"
		"ldr lr, [sp, #4]\n\t"
		"ldr r3, [lr, #8]\n\t"
		"ldrd r1, r2, [r3], #8\n\t"
		"str r3, [lr, #8]\n\t"
		"ldr r3, [lr, #12]\n\t"
		"ldrh r12, [r3], #2\n\t"
		"str r3, [lr, #12]\n\t"
		SCALE("r1", "r4", "r5", "r6", "r7")
		"lsr r12, r12, #8\n\t"
		SCALE("r2", "r8", "r9", "r10", "r11")
		"ldrd r1, r2, [lr, #24]\n\t"
		"cbnz r2, 6f\n\t"
		LIMIT("usat", "15", "r4", "r8")
		LIMIT("usat", "15", "r5", "r9")
		LIMIT("usat", "15", "r6", "r10")
		LIMIT("usat", "15", "r7", "r11")
		"4:\n\t"
		"ldrd r1, r2, [lr, #16]\n\t"
		"ldrd r3, r12, [lr, #32]\n\t"
		"add r8, r1, #4\n\t"
		"str r8, [lr, #16]\n\t"
		"cmp r12, #0\n\t"
		"bne 7f\n\t"
		"str r4, [r1]\n\t"
		"str r5, [r1, r2]\n\t"
		"add r1, r1, r2, lsl #1\n\t"
		"str r6, [r1]\n\t"
		"str r7, [r1, r2]\n"
		"5:\n\t"
		"subs r3, #1\n\t"
		"str r3, [lr, #32]\n\t"
		"bne 1b\n\t"
		"add sp, #8\n\t"
		"pop {r4-r11, pc}\n"
		"6:\n\t"
		LIMIT("ssat", "16", "r4", "r8")
		LIMIT("ssat", "16", "r5", "r9")
		LIMIT("ssat", "16", "r6", "r10")
		LIMIT("ssat", "16", "r7", "r11")
		CLAMP("r4")
		CLAMP("r5")
		CLAMP("r6")
		CLAMP("r7")
		"b 4b\n"
		"7:\n\t" /* fewer positions, or a single filter */
		"ldrd r12, r8, [lr, #40]\n"
		"8:\n\t"
		"strh r4, [r1]\n\t"
		"lsr r4, r4, #16\n\t"
		"cmp r8, #0\n\t"
		"it ne\n\t"
		"strhne r4, [r1, #2]\n\t"
		"add r1, r2\n\t"
		"mov r4, r5\n\t"
		"mov r5, r6\n\t"
		"mov r6, r7\n\t"
		"subs r12, #1\n\t"
		"bne 8b\n\t"
		"b 5b\n\t");
	/* clang-format on */
#undef STEP
#undef SCALE
#undef LIMIT
#undef CLAMP
}

/* Two elements in a word, words of four windows in turn. */
static uint32_t *conv_dsp_s16_put(uint32_t *to, const int16_t *from, int32_t elements)
{
	for (; elements >= 8; elements -= 8, from += 8, to += 4 * WINDOWS) {
		to[0] = tinyml_load_word(from);
		to[WINDOWS] = tinyml_load_word(from + 2);
		to[2 * WINDOWS] = tinyml_load_word(from + 4);
		to[3 * WINDOWS] = tinyml_load_word(from + 6);
	}
	for (; elements > 0; elements -= 2, from += 2, to += WINDOWS) {
		*to = tinyml_load_word(from);
	}
	return to;
}

/* Copy the window at (top, left) into a column. */
static void conv_dsp_s16_gather(const struct tinyml_conv_dsp_s16 *p,
				const struct conv_dsp_s16_group *g, const int16_t *x, int32_t top,
				int32_t left, uint32_t *column)
{
	const struct tinyml_window *w = &p->window;
	/* Elements that are adjacent in the input: a row of the kernel, or a tap. */
	const bool rows = w->dilation_w == 1 && p->groups == 1;
	const int32_t taps = rows ? w->kernel_w : 1, run = taps * g->in_c;
	const bool inside = top >= 0 && left >= 0 &&
			    top + (w->kernel_h - 1) * w->dilation_h < w->in_h &&
			    left + (w->kernel_w - 1) * w->dilation_w < w->in_w;

	x += g->first_in;
	if (!inside || g->in_c % 2 != 0) {
		tinyml_copy_window_s16(w, x, top, left, g->in_c, g->window);
		for (int32_t i = g->elements; i < g->padded; i++) {
			g->window[i] = 0;
		}
		conv_dsp_s16_put(column, g->window, g->padded);
		return;
	}
	for (int32_t ky = 0; ky < w->kernel_h; ky++, top += w->dilation_h) {
		for (int32_t kx = 0; kx < w->kernel_w; kx += taps) {
			const int32_t col = left + kx * w->dilation_w;

			column = conv_dsp_s16_put(column, &x[(top * w->in_w + col) * w->in_c], run);
		}
	}
	if (g->padded != g->elements) { /* by two: their weights are zero */
		*column = 0;
	}
}

/* All filters of a group at `count` positions. */
static const uint32_t *conv_dsp_s16_apply(const struct tinyml_conv_dsp_s16 *p,
					  const struct conv_dsp_s16_group *g,
					  const uint32_t *weights, int32_t first_out, int32_t out_c,
					  int16_t *y, int32_t count)
{
	const uint32_t *end = g->columns + g->padded / 2 * WINDOWS;
	const bool whole = p->out_min == 0 && p->out_max == INT16_MAX;
	struct conv_dsp_s16_walk walk = {
		.columns = g->columns,
		.bias = &p->bias[first_out],
		.factor = &p->factor[first_out],
		.shift = &p->shift[first_out],
		.y = &y[first_out],
		.step = 2 * p->window.out_c,
		.low = (uint16_t)p->out_min * UINT32_C(0x10001),
		.high = whole ? 0 : (uint16_t)p->out_max * UINT32_C(0x10001),
		.pairs = out_c / 2,
		.some = count != WINDOWS,
		.count = count,
		.both = 1,
	};

	if (walk.pairs > 0) {
		weights = conv_dsp_s16_filters(weights, end, &walk);
	}
	if (out_c % 2 != 0) { /* nothing is read behind the tables */
		const int32_t last = first_out + out_c - 1;
		const int32_t bias[2] = {p->bias[last], 0}, factor[2] = {p->factor[last], 0};
		const uint8_t shift[2] = {p->shift[last], 1};

		walk.bias = bias;
		walk.factor = factor;
		walk.shift = shift;
		walk.y = &y[last];
		walk.pairs = 1;
		walk.some = 1;
		walk.both = 0;
		weights = conv_dsp_s16_filters(weights, end, &walk);
	}
	return weights;
}

void tinyml_conv_dsp_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y,
			 void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t positions = w->out_h * w->out_w, out_c = w->out_c / p->groups;
	struct conv_dsp_s16_group g = {.in_c = w->in_c / p->groups, .columns = scratch};

	TINYML_ASSERT(w->in_c % p->groups == 0 && w->out_c % p->groups == 0);
	TINYML_ASSERT(TINYML_ALIGNED(scratch, 4) && TINYML_ALIGNED(p->weights, 4));
	g.elements = w->kernel_h * w->kernel_w * g.in_c;
	g.padded = (g.elements + 3) & ~3;
	g.window = (int16_t *)&g.columns[g.padded / 2 * WINDOWS];
	for (int32_t n = 0; n < w->batches; n++) {
		const uint32_t *weights = (const uint32_t *)p->weights;

		for (int32_t i = 0; i < p->groups; i++) {
			const uint32_t *next = weights;

			g.first_in = i * g.in_c;
			for (int32_t at = 0; at < positions; at += WINDOWS) {
				const int32_t left = positions - at;
				const int32_t count = left < WINDOWS ? left : WINDOWS;

				for (int32_t j = 0; j < count; j++) {
					const int32_t row = (at + j) / w->out_w;
					const int32_t col = at + j - row * w->out_w;

					conv_dsp_s16_gather(
						p, &g, x, row * w->stride_h - w->pad_top,
						col * w->stride_w - w->pad_left, &g.columns[j]);
				}
				next = conv_dsp_s16_apply(p, &g, weights, i * out_c, out_c,
							  &y[at * w->out_c], count);
			}
			weights = next;
		}
		x += w->in_h * w->in_w * w->in_c;
		y += positions * w->out_c;
	}
}

#endif /* TINYML_CORE_DSP */
