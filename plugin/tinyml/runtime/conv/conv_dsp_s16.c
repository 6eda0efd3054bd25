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
	int32_t taps;     /* adjacent in the input: of a row of the kernel, or one */
	bool one_run;     /* all of a window is adjacent */
	int32_t padded;   /* up to a multiple of four */
	int32_t skipped;  /* bytes of code in the first turn over the elements */
	uint32_t *columns;
	int16_t *window; /* one that is collected first */
};

/* What the loop over pairs of filters reads and keeps. */
struct conv_dsp_s16_walk {
	const uint32_t *columns;
	const int32_t *bias;
	const int32_t *factor;
	int32_t rare; /* SOME, SHIFTS and LIMITS */
	int16_t *y;
	int32_t step;       /* bytes of the output from a position to the next */
	const int16_t *end; /* of the outputs of the first position */
	const uint8_t *shift;
	uint32_t low; /* in both halves of the word */
	uint32_t high;
	int32_t count; /* of positions */
	int32_t both;  /* 0: a single filter, whose pair is zeros */
};
TINYML_OFFSET(struct conv_dsp_s16_walk, columns, 0);
TINYML_OFFSET(struct conv_dsp_s16_walk, bias, 4);
TINYML_OFFSET(struct conv_dsp_s16_walk, factor, 8);
TINYML_OFFSET(struct conv_dsp_s16_walk, rare, 12);
TINYML_OFFSET(struct conv_dsp_s16_walk, y, 16);
TINYML_OFFSET(struct conv_dsp_s16_walk, step, 20);
TINYML_OFFSET(struct conv_dsp_s16_walk, end, 24);
TINYML_OFFSET(struct conv_dsp_s16_walk, shift, 28);
TINYML_OFFSET(struct conv_dsp_s16_walk, low, 32);
TINYML_OFFSET(struct conv_dsp_s16_walk, high, 36);
TINYML_OFFSET(struct conv_dsp_s16_walk, count, 40);
TINYML_OFFSET(struct conv_dsp_s16_walk, both, 44);

#define SOME   1 /* not all outputs of four positions and of both filters are written */
#define SHIFTS 2 /* factors do not contain them */
#define LIMITS 4 /* other limits than 0 and 32767 */

#define TURN        4   /* times four elements: a turn of the loop over them */
#define FOUR_BYTES  104 /* of the code for four elements */
#define CHECK_BYTES 10  /* and for whether there are more */

/* The outputs of pairs of filters at up to four windows. Returns what follows the weights. The
 * first turn of the loop over elements begins `skipped` bytes of code later.
 */
TINYML_ASSEMBLY static const uint32_t *
conv_dsp_s16_filters(const uint32_t *weights TINYML_UNSEEN, const uint32_t *end TINYML_UNSEEN,
		     struct conv_dsp_s16_walk *walk TINYML_UNSEEN, int32_t skipped TINYML_UNSEEN)
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
	/* The first one adds to the biases in r4 and r8. */
#define FIRST                                                                                      \
	"ldr r2, [r0], #4\n\t"                                                                     \
	"ldrd r12, lr, [r1], #8\n\t"                                                               \
	"sxtb16 r3, r2, ror #8\n\t"                                                                \
	"sxtb16 r2, r2\n\t"                                                                        \
	"ldrd r10, r11, [r1], #8\n\t"                                                              \
	"smlad r5, r2, lr, r4\n\t"                                                                 \
	"smlad r9, r3, lr, r8\n\t"                                                                 \
	"smlad r6, r2, r10, r4\n\t"                                                                \
	"smlad r10, r3, r10, r8\n\t"                                                               \
	"smlad r7, r2, r11, r4\n\t"                                                                \
	"smlad r11, r3, r11, r8\n\t"                                                               \
	"smlad r4, r2, r12, r4\n\t"                                                                \
	"smlad r8, r3, r12, r8\n\t"
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
	/* The same with factors that need no shift. */
#define ROUND(factor, a, b, c, d)                                                                  \
	"smmulr " a ", " a ", " factor "\n\t"                                                      \
	"smmulr " b ", " b ", " factor "\n\t"                                                      \
	"smmulr " c ", " c ", " factor "\n\t"                                                      \
	"smmulr " d ", " d ", " factor "\n\t"
	/* Two outputs become a word. */
#define LIMIT(saturate, bits, a, b)                                                                \
	saturate " " a ", #" bits ", " a "\n\t"                                                    \
	saturate " " b ", #" bits ", " b "\n\t"                                                    \
	"pkhbt " a ", " a ", " b ", lsl #16\n\t"
#define ALL(saturate, bits)                                                                        \
	LIMIT(saturate, bits, "r4", "r8")                                                          \
	LIMIT(saturate, bits, "r5", "r9")                                                          \
	LIMIT(saturate, bits, "r6", "r10")                                                         \
	LIMIT(saturate, bits, "r7", "r11")
#define CLAMP(two)                                                                                 \
	"ssub16 r3, " two ", r1\n\t"                                                               \
	"sel " two ", " two ", r1\n\t"                                                             \
	"ssub16 r3, r2, " two "\n\t"                                                               \
	"sel " two ", " two ", r2\n\t"
	__asm__ volatile(
		"push {r1-r11, lr}\n\t"
		"mov lr, r2\n"
		"1:\n\t" /* a pair of filters: four elements, then more of them in turns */
		"ldrd r1, r2, [lr]\n\t"
		"ldrd r4, r8, [r2], #8\n\t"
		"str r2, [lr, #4]\n\t"
		FIRST
		STEP
		"ldr r12, [sp, #8]\n\t"
		"add pc, r12\n\t"
		"nop\n"
		"2:\n\t"
		STEP
		STEP
		"20:\n\t"
		STEP
		STEP
		STEP
		STEP
		STEP
		STEP
		TINYML_CODE_BYTES("2b", "20b", FOUR_BYTES)
		"21:\n\t"
		"ldr r12, [sp]\n\t"
		"cmp r1, r12\n\t"
		"bne.w 2b\n"
		"22:\n\t"
		TINYML_CODE_BYTES("21b", "22b", CHECK_BYTES)
		"ldr lr, [sp, #4]\n\t"
		"ldrd r12, r3, [lr, #8]\n\t"
		"ldrd r1, r2, [r12], #8\n\t"
		"str r12, [lr, #8]\n\t"
		"cbz r3, 3f\n\t"
		"b 6f\n"
		"3:\n\t"
		ROUND("r1", "r4", "r5", "r6", "r7")
		ROUND("r2", "r8", "r9", "r10", "r11")
		ALL("usat", "15")
		"ldrd r1, r2, [lr, #16]\n\t"
		"ldr r12, [lr, #24]\n\t"
		"add r3, r1, #4\n\t"
		"str r3, [lr, #16]\n"
		"4:\n\t"
		"str r4, [r1]\n\t"
		"str r5, [r1, r2]\n\t"
		"str r6, [r1, r2, lsl #1]\n\t"
		"add r1, r2\n\t"
		"cmp r3, r12\n\t"
		"str r7, [r1, r2, lsl #1]\n\t"
		"bne 1b\n"
		"5:\n\t"
		"add sp, #12\n\t"
		"pop {r4-r11, pc}\n"
		"6:\n\t"
		"tst r3, #2\n\t"
		"bne 7f\n\t"
		ROUND("r1", "r4", "r5", "r6", "r7")
		ROUND("r2", "r8", "r9", "r10", "r11")
		"b 8f\n"
		"7:\n\t"
		"ldr r3, [lr, #28]\n\t"
		"ldrh r12, [r3], #2\n\t"
		"str r3, [lr, #28]\n\t"
		SCALE("r1", "r4", "r5", "r6", "r7")
		"lsr r12, r12, #8\n\t"
		SCALE("r2", "r8", "r9", "r10", "r11")
		"ldr r3, [lr, #12]\n"
		"8:\n\t"
		"tst r3, #4\n\t"
		"bne 9f\n\t"
		ALL("usat", "15")
		"b 10f\n"
		"9:\n\t"
		"ldrd r1, r2, [lr, #32]\n\t"
		ALL("ssat", "16")
		CLAMP("r4")
		CLAMP("r5")
		CLAMP("r6")
		CLAMP("r7")
		"10:\n\t"
		"ldrd r1, r2, [lr, #16]\n\t"
		"ldrb r12, [lr, #12]\n\t"
		"add r3, r1, #4\n\t"
		"str r3, [lr, #16]\n\t"
		"lsrs r12, r12, #1\n\t" /* the carry is SOME */
		"ldr r12, [lr, #24]\n\t"
		"bcc 4b\n\t"
		"ldrd r9, r8, [lr, #40]\n" /* fewer positions, or a single filter */
		"11:\n\t"
		"strh r4, [r1]\n\t"
		"lsr r4, r4, #16\n\t"
		"cmp r8, #0\n\t"
		"it ne\n\t"
		"strhne r4, [r1, #2]\n\t"
		"add r1, r2\n\t"
		"mov r4, r5\n\t"
		"mov r5, r6\n\t"
		"mov r6, r7\n\t"
		"subs r9, #1\n\t"
		"bne 11b\n\t"
		"cmp r3, r12\n\t"
		"bne 1b\n\t"
		"b 5b\n\t");
	/* clang-format on */
#undef STEP
#undef FIRST
#undef SCALE
#undef ROUND
#undef LIMIT
#undef ALL
#undef CLAMP
}

/* Two elements in a word, words of four windows in turn. */
static uint32_t *conv_dsp_s16_put(uint32_t *to, const int16_t *from, int32_t elements)
{
	for (; elements >= 16; elements -= 16, from += 16, to += 8 * WINDOWS) {
		to[0] = tinyml_load_word(from);
		to[WINDOWS] = tinyml_load_word(from + 2);
		to[2 * WINDOWS] = tinyml_load_word(from + 4);
		to[3 * WINDOWS] = tinyml_load_word(from + 6);
		to[4 * WINDOWS] = tinyml_load_word(from + 8);
		to[5 * WINDOWS] = tinyml_load_word(from + 10);
		to[6 * WINDOWS] = tinyml_load_word(from + 12);
		to[7 * WINDOWS] = tinyml_load_word(from + 14);
	}
	for (; elements > 0; elements -= 2, from += 2, to += WINDOWS) {
		*to = tinyml_load_word(from);
	}
	return to;
}

/* Whether the window at (top, left) is inside the input. */
static bool conv_dsp_s16_inside(const struct tinyml_window *w, int32_t top, int32_t left)
{
	return top >= 0 && left >= 0 && top + (w->kernel_h - 1) * w->dilation_h < w->in_h &&
	       left + (w->kernel_w - 1) * w->dilation_w < w->in_w;
}

/* The window at (top, left), `padded` elements that are adjacent: in the input or in a copy. What
 * follows the window in the input meets weights of zero.
 */
static const int16_t *conv_dsp_s16_window(const struct tinyml_window *w,
					  const struct conv_dsp_s16_group *g, const int16_t *x,
					  int32_t top, int32_t left, bool inside)
{
	const int32_t start = (top * w->in_w + left) * w->in_c;

	if (inside && g->one_run && start + g->padded <= w->in_h * w->in_w * w->in_c) {
		return &x[start];
	}
	tinyml_copy_window_s16(w, x, top, left, g->in_c, g->window);
	for (int32_t i = g->elements; i < g->padded; i++) {
		g->window[i] = 0;
	}
	return g->window;
}

/* Copy the window at (top, left) into a column. */
static void conv_dsp_s16_gather(const struct tinyml_window *w, const struct conv_dsp_s16_group *g,
				const int16_t *x, int32_t top, int32_t left, uint32_t *column)
{
	const int32_t taps = g->taps, run = taps * g->in_c;
	const bool inside = conv_dsp_s16_inside(w, top, left);

	x += g->first_in;
	if (!inside || g->one_run || run % 2 != 0) {
		const int16_t *window = conv_dsp_s16_window(w, g, x, top, left, inside);

		conv_dsp_s16_put(column, window, g->padded);
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

/* The sum of a filter whose pair is zeros, at a window. */
static int32_t conv_dsp_s16_dot(const uint32_t *weights, const int16_t *x, int32_t fours)
{
	int32_t sum = 0;

#define PRODUCTS(i)                                                                                \
	(sum = __smlad(tinyml_even_bytes(weights[i]), (int16x2_t)tinyml_load_word(x + 2 * (i)),    \
		       sum))
	for (; fours >= 2; fours -= 2, weights += 4, x += 8) {
		PRODUCTS(0);
		PRODUCTS(1);
		PRODUCTS(2);
		PRODUCTS(3);
	}
	if (fours > 0) {
		PRODUCTS(0);
		PRODUCTS(1);
	}
#undef PRODUCTS
	return sum;
}

/* The outputs of a convolution with a single filter: columns would be more work than products. */
static void conv_dsp_s16_single(const struct tinyml_conv_dsp_s16 *p,
				const struct conv_dsp_s16_group *g, const int16_t *x, int16_t *y,
				int32_t step)
{
	const struct tinyml_window *w = &p->window;
	/* Without a shift, factors are below 2^30. */
	const int32_t factor = p->shift != NULL ? p->factor[0] : 2 * p->factor[0];
	const int32_t shift = p->shift != NULL ? p->shift[0] : 1;

	for (int32_t row = 0; row < w->out_h; row++) {
		const int32_t top = row * w->stride_h - w->pad_top;

		for (int32_t col = 0; col < w->out_w; col++, y += step) {
			const int32_t left = col * w->stride_w - w->pad_left;
			const bool inside = conv_dsp_s16_inside(w, top, left);
			const int16_t *window = conv_dsp_s16_window(w, g, x, top, left, inside);
			const int32_t sum = conv_dsp_s16_dot((const uint32_t *)p->weights, window,
							     g->padded / 4);

			*y = tinyml_output_s16(sum + p->bias[0], factor, shift, p->out_min,
					       p->out_max);
		}
	}
}

/* All filters of a group at `count` positions. */
static const uint32_t *conv_dsp_s16_apply(const struct tinyml_conv_dsp_s16 *p,
					  const struct conv_dsp_s16_group *g,
					  const uint32_t *weights, int32_t first_out, int32_t out_c,
					  int16_t *y, int32_t step, int32_t count)
{
	const uint32_t *end = g->columns + g->padded / 2 * WINDOWS;
	const int32_t even = out_c & ~1;
	const int32_t limits = p->out_min == 0 && p->out_max == INT16_MAX ? 0 : LIMITS;
	const int32_t usual = limits | (p->shift != NULL ? SHIFTS : 0);
	struct conv_dsp_s16_walk walk = {
		.columns = g->columns,
		.bias = &p->bias[first_out],
		.factor = &p->factor[first_out],
		.rare = usual | (count != WINDOWS ? SOME : 0),
		.y = &y[first_out],
		.step = 2 * step,
		.end = &y[first_out + even],
		.shift = p->shift != NULL ? &p->shift[first_out] : NULL,
		.low = (uint16_t)p->out_min * UINT32_C(0x10001),
		.high = (uint16_t)p->out_max * UINT32_C(0x10001),
		.count = count,
		.both = 1,
	};

	if (even > 0) {
		weights = conv_dsp_s16_filters(weights, end, &walk, g->skipped);
	}
	if (out_c != even) { /* nothing is read behind the tables */
		const int32_t last = first_out + even;
		const int32_t bias[2] = {p->bias[last], 0}, factor[2] = {p->factor[last], 0};
		const uint8_t shift[2] = {p->shift != NULL ? p->shift[last] : 0, 1};

		walk.bias = bias;
		walk.factor = factor;
		walk.shift = shift;
		walk.y = &y[last];
		walk.end = &y[last + 2];
		walk.rare = usual | SOME;
		walk.both = 0;
		weights = conv_dsp_s16_filters(weights, end, &walk, g->skipped);
	}
	return weights;
}

void tinyml_conv_dsp_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y,
			 void *scratch)
{
	tinyml_conv_steps_dsp_s16(p, x, y, p->window.out_c, scratch);
}

void tinyml_conv_steps_dsp_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y,
			       int32_t step, void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t positions = w->out_h * w->out_w, out_c = w->out_c / p->groups;
	struct conv_dsp_s16_group g = {.in_c = w->in_c / p->groups, .columns = scratch};
	int32_t fours;

	TINYML_ASSERT(w->in_c % p->groups == 0 && w->out_c % p->groups == 0);
	TINYML_ASSERT(TINYML_ALIGNED(scratch, 4) && TINYML_ALIGNED(p->weights, 4));
	g.elements = w->kernel_h * w->kernel_w * g.in_c;
	g.taps = w->dilation_w == 1 && p->groups == 1 ? w->kernel_w : 1;
	g.one_run = p->groups == 1 && w->kernel_h == 1 && g.taps == w->kernel_w;
	g.padded = (g.elements + 3) & ~3;
	g.window = (int16_t *)&g.columns[g.padded / 2 * WINDOWS];
	fours = g.padded / 4 - 1; /* the first ones are no part of a turn */
	g.skipped =
		fours == 0 ? TURN * FOUR_BYTES + CHECK_BYTES : (-fours & (TURN - 1)) * FOUR_BYTES;
	for (int32_t n = 0; n < w->batches; n++) {
		const uint32_t *weights = (const uint32_t *)p->weights;

		if (w->out_c == 1) {
			conv_dsp_s16_single(p, &g, x, y, step);
		}
		for (int32_t i = 0; w->out_c > 1 && i < p->groups; i++) {
			const uint32_t *next = weights;
			int32_t row = 0, col = 0;

			g.first_in = i * g.in_c;
			for (int32_t at = 0; at < positions; at += WINDOWS) {
				const int32_t left = positions - at;
				const int32_t count = left < WINDOWS ? left : WINDOWS;

				for (int32_t j = 0; j < count; j++) {
					conv_dsp_s16_gather(
						w, &g, x, row * w->stride_h - w->pad_top,
						col * w->stride_w - w->pad_left, &g.columns[j]);
					col++;
					if (col == w->out_w) {
						col = 0;
						row++;
					}
				}
				next = conv_dsp_s16_apply(p, &g, weights, i * out_c, out_c,
							  &y[at * step], step, count);
			}
			weights = next;
		}
		x += w->in_h * w->in_w * w->in_c;
		y += positions * step;
	}
}

#endif /* TINYML_CORE_DSP */
