/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions with int16 activations and DSP instructions: three windows, side by side in columns,
 * meet two filters at a time.
 *
 * A word has two elements of both filters: a half of it is a + 128 + 256 * b. Words as they are
 * make one sum, and their upper bytes another, that of b: only these are widened. A sum of a is the
 * first one less 256 of the second and 128 of the inputs, modulo 2^32, which it is known to fit
 * into.
 */

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include "../weighted/dsp_s16.h"
#include "window_s16.h"

#define WINDOWS 3

struct conv_dsp_s16_group {
	int32_t first_in;
	int32_t in_c;
	int32_t elements;  /* of a filter */
	int32_t taps;      /* adjacent in the input: of a row of the kernel, or one */
	bool one_run;      /* all of a window is adjacent */
	bool flat;         /* each position of the input is a window, in the order of outputs */
	bool narrow;       /* rows of taps are more than words of a row */
	int32_t padded;    /* up to a multiple of four */
	uint32_t *columns; /* of each window -128 times the sum of its elements, then these */
	int16_t *window;   /* one that is collected first */
};

/* What the loop over pairs of filters reads. It keeps a copy on the stack. */
struct conv_dsp_s16_walk {
	const uint32_t *columns;
	const int32_t *bias;
	const uint32_t *columns_end;
	int32_t skipped; /* bytes of code in the first turn over the elements */
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
TINYML_OFFSET(struct conv_dsp_s16_walk, columns_end, 8);
TINYML_OFFSET(struct conv_dsp_s16_walk, skipped, 12);
TINYML_OFFSET(struct conv_dsp_s16_walk, factor, 16);
TINYML_OFFSET(struct conv_dsp_s16_walk, rare, 20);
TINYML_OFFSET(struct conv_dsp_s16_walk, y, 24);
TINYML_OFFSET(struct conv_dsp_s16_walk, step, 28);
TINYML_OFFSET(struct conv_dsp_s16_walk, end, 32);
TINYML_OFFSET(struct conv_dsp_s16_walk, shift, 36);
TINYML_OFFSET(struct conv_dsp_s16_walk, low, 40);
TINYML_OFFSET(struct conv_dsp_s16_walk, high, 44);
TINYML_OFFSET(struct conv_dsp_s16_walk, count, 48);
TINYML_OFFSET(struct conv_dsp_s16_walk, both, 52);

#define SOME   1 /* not all outputs of four positions and of both filters are written */
#define SHIFTS 2 /* factors do not contain them */
#define LIMITS 4 /* other limits than 0 and 32767 */

#define TURN        8  /* times four elements: a turn of the loop over them */
#define FOUR_BYTES  68 /* of the code for four elements */
#define CHECK_BYTES 6  /* and for whether there are more */

/* The outputs of pairs of filters at up to three windows. Returns what follows the weights. */
TINYML_ASSEMBLY static const uint32_t *
conv_dsp_s16_filters(const uint32_t *weights TINYML_UNSEEN,
		     const struct conv_dsp_s16_walk *walk TINYML_UNSEEN)
{
	/* clang-format off */
#define TWO(two)                                                                                   \
	"ldm r1!, {r10, r11, r12}\n\t"                                                             \
	"smlad r4, " two ", r10, r4\n\t"                                                           \
	"smlad r5, " two ", r11, r5\n\t"                                                           \
	"smlad r6, " two ", r12, r6\n\t"                                                           \
	"sxtb16 " two ", " two ", ror #8\n\t"                                                      \
	"smlad r7, " two ", r10, r7\n\t"                                                           \
	"smlad r8, " two ", r11, r8\n\t"                                                           \
	"smlad r9, " two ", r12, r9\n\t"
	/* The second sums begin with that in r7, the bias. */
#define FIRST                                                                                      \
	"ldrd r2, r3, [r0], #8\n\t"                                                                \
	"ldm r1!, {r10, r11, r12}\n\t"                                                             \
	"smlad r4, r2, r10, r4\n\t"                                                                \
	"smlad r5, r2, r11, r5\n\t"                                                                \
	"smlad r6, r2, r12, r6\n\t"                                                                \
	"sxtb16 r2, r2, ror #8\n\t"                                                                \
	"smlad r8, r2, r11, r7\n\t"                                                                \
	"smlad r9, r2, r12, r7\n\t"                                                                \
	"smlad r7, r2, r10, r7\n\t"                                                                \
	TWO("r3")
#define STEP                                                                                       \
	"ldrd r2, r3, [r0], #8\n\t"                                                                \
	TWO("r2")                                                                                  \
	TWO("r3")
	/* The sums of a filter with its factor; the shift is in the lowest byte of r12. */
#define SCALE(factor, a, b, c)                                                                     \
	"mov r3, #1\n\t"                                                                           \
	"lsl r3, r3, r12\n\t"                                                                      \
	"lsr r3, r3, #1\n\t"                                                                       \
	"smmla " a ", " a ", " factor ", r3\n\t"                                                   \
	"smmla " b ", " b ", " factor ", r3\n\t"                                                   \
	"smmla " c ", " c ", " factor ", r3\n\t"                                                   \
	"asr " a ", " a ", r12\n\t"                                                                \
	"asr " b ", " b ", r12\n\t"                                                                \
	"asr " c ", " c ", r12\n\t"
	/* The same with factors that need no shift. */
#define ROUND(factor, a, b, c)                                                                     \
	"smmulr " a ", " a ", " factor "\n\t"                                                      \
	"smmulr " b ", " b ", " factor "\n\t"                                                      \
	"smmulr " c ", " c ", " factor "\n\t"
	/* Two outputs become a word. */
#define LIMIT(saturate, bits, a, b)                                                                \
	saturate " " a ", #" bits ", " a "\n\t"                                                    \
	saturate " " b ", #" bits ", " b "\n\t"                                                    \
	"pkhbt " a ", " a ", " b ", lsl #16\n\t"
#define ALL(saturate, bits)                                                                        \
	LIMIT(saturate, bits, "r4", "r7")                                                          \
	LIMIT(saturate, bits, "r5", "r8")                                                          \
	LIMIT(saturate, bits, "r6", "r9")
#define CLAMP(two)                                                                                 \
	"ssub16 r3, " two ", r1\n\t"                                                               \
	"sel " two ", " two ", r1\n\t"                                                             \
	"ssub16 r3, r2, " two "\n\t"                                                               \
	"sel " two ", " two ", r2\n\t"
	__asm__ volatile(
		".balign 4\n\t" /* for ADR, whatever compilers align functions to */
		"push {r4-r11, lr}\n\t"
		"mov lr, r1\n\t"
		"ldrd r2, r3, [lr, #48]\n\t"
		"push {r2, r3}\n\t"
		"ldm lr, {r1-r12}\n\t"
		"adr.w lr, 2f\n\t"
		"add r4, lr\n\t"
		"orr r4, #1\n\t" /* Thumb */
		"push {r1-r12}\n"
		"1:\n\t" /* a pair of filters */
		"ldrd r1, r2, [sp]\n\t"
		"ldr lr, [sp, #8]\n\t"
		"ldrd r3, r7, [r2], #8\n\t"
		"ldm r1!, {r4, r5, r6}\n\t"
		"str r2, [sp, #4]\n\t"
		"add r3, r3, r7, lsl #8\n\t"
		"add r4, r3\n\t"
		"add r5, r3\n\t"
		"add r6, r3\n\t"
		FIRST
		"ldr pc, [sp, #12]\n"
		"2:\n\t"
		STEP
		"20:\n\t"
		STEP
		STEP
		STEP
		STEP
		STEP
		STEP
		STEP
		TINYML_CODE_BYTES("2b", "20b", FOUR_BYTES)
		"21:\n\t"
		"cmp r1, lr\n\t"
		"bne.w 2b\n\t"
		"22:\n\t"
		TINYML_CODE_BYTES("21b", "22b", CHECK_BYTES)
		"ldrd r12, r3, [sp, #16]\n\t"
		"sub r4, r4, r7, lsl #8\n\t"
		"sub r5, r5, r8, lsl #8\n\t"
		"ldrd r1, r2, [r12], #8\n\t"
		"sub r6, r6, r9, lsl #8\n\t"
		"str r12, [sp, #16]\n\t"
		"cbz r3, 3f\n\t"
		"b 6f\n"
		"3:\n\t"
		ROUND("r1", "r4", "r5", "r6")
		ROUND("r2", "r7", "r8", "r9")
		ALL("usat", "15")
		"ldrd r1, r2, [sp, #24]\n\t"
		"ldr r12, [sp, #32]\n\t"
		"add r3, r1, #4\n\t"
		"str r3, [sp, #24]\n"
		"4:\n\t"
		"str r4, [r1]\n\t"
		"str r5, [r1, r2]\n\t"
		"cmp r3, r12\n\t"
		"str r6, [r1, r2, lsl #1]\n\t"
		"bne 1b\n"
		"5:\n\t"
		"add sp, #56\n\t"
		"pop {r4-r11, pc}\n"
		"6:\n\t"
		"tst r3, #2\n\t"
		"bne 7f\n\t"
		ROUND("r1", "r4", "r5", "r6")
		ROUND("r2", "r7", "r8", "r9")
		"b 8f\n"
		"7:\n\t"
		"ldr r3, [sp, #36]\n\t"
		"ldrh r12, [r3], #2\n\t"
		"str r3, [sp, #36]\n\t"
		SCALE("r1", "r4", "r5", "r6")
		"lsr r12, r12, #8\n\t"
		SCALE("r2", "r7", "r8", "r9")
		"ldr r3, [sp, #20]\n"
		"8:\n\t"
		"tst r3, #4\n\t"
		"bne 9f\n\t"
		ALL("usat", "15")
		"b 10f\n"
		"9:\n\t"
		"ldrd r1, r2, [sp, #40]\n\t"
		ALL("ssat", "16")
		CLAMP("r4")
		CLAMP("r5")
		CLAMP("r6")
		"10:\n\t"
		"ldrd r1, r2, [sp, #24]\n\t"
		"ldrb r12, [sp, #20]\n\t"
		"add r3, r1, #4\n\t"
		"str r3, [sp, #24]\n\t"
		"lsrs r12, r12, #1\n\t" /* the carry is SOME */
		"ldr r12, [sp, #32]\n\t"
		"bcc 4b\n\t"
		"ldrd r9, r8, [sp, #48]\n" /* fewer positions, or a single filter */
		"11:\n\t"
		"strh r4, [r1]\n\t"
		"lsr r4, r4, #16\n\t"
		"cmp r8, #0\n\t"
		"it ne\n\t"
		"strhne r4, [r1, #2]\n\t"
		"add r1, r2\n\t"
		"mov r4, r5\n\t"
		"mov r5, r6\n\t"
		"subs r9, #1\n\t"
		"bne 11b\n\t"
		"cmp r3, r12\n\t"
		"bne 1b\n\t"
		"b 5b\n\t");
	/* clang-format on */
#undef TWO
#undef FIRST
#undef STEP
#undef SCALE
#undef ROUND
#undef LIMIT
#undef ALL
#undef CLAMP
}

/* Where windows are, and the sums of their elements. */
struct conv_dsp_s16_sources {
	const int16_t *from[WINDOWS];
	int32_t sums[WINDOWS];
};
TINYML_OFFSET(struct conv_dsp_s16_sources, from, 0);
TINYML_OFFSET(struct conv_dsp_s16_sources, sums, 12);

/* The next elements of all windows, whose number is even, from `offset` bytes on: two in a word,
 * words of windows in turn. Returns where the next ones go.
 */
TINYML_ASSEMBLY static uint32_t *
conv_dsp_s16_put_all(uint32_t *to TINYML_UNSEEN, struct conv_dsp_s16_sources *sources TINYML_UNSEEN,
		     int32_t elements TINYML_UNSEEN, int32_t offset TINYML_UNSEEN)
{
	/* clang-format off */
#define TWO                                                                                        \
	"ldr r10, [r4], #4\n\t"                                                                    \
	"ldr r11, [r5], #4\n\t"                                                                    \
	"ldr r12, [r6], #4\n\t"                                                                    \
	"smlad r7, r10, r3, r7\n\t"                                                                \
	"smlad r8, r11, r3, r8\n\t"                                                                \
	"smlad r9, r12, r3, r9\n\t"                                                                \
	"stm r0!, {r10, r11, r12}\n\t"
	__asm__ volatile(
		"push {r4-r11, lr}\n\t"
		"ldm r1, {r4-r9}\n\t"
		"add r4, r3\n\t"
		"add r5, r3\n\t"
		"add r6, r3\n\t"
		"mov r3, #0x00010001\n\t"
		"subs r2, #8\n\t"
		"blt 2f\n"
		"1:\n\t"
		TWO
		TWO
		TWO
		TWO
		"subs r2, #8\n\t"
		"bge 1b\n"
		"2:\n\t"
		"adds r2, #8\n\t"
		"beq 4f\n"
		"3:\n\t"
		TWO
		"subs r2, #2\n\t"
		"bne 3b\n"
		"4:\n\t"
		"add r1, #12\n\t"
		"stm r1, {r7-r9}\n\t"
		"pop {r4-r11, pc}\n\t");
	/* clang-format on */
#undef TWO
}

/* The same for one window: its words are WINDOWS apart. */
static uint32_t *conv_dsp_s16_put(uint32_t *to, const int16_t *from, int32_t elements, int32_t *sum)
{
	int32_t total = *sum;

#define TWO(i)                                                                                     \
	do {                                                                                       \
		const uint32_t two = tinyml_load_word(from + 2 * (i));                             \
                                                                                                   \
		to[WINDOWS * (i)] = two;                                                           \
		total = __smlad((int16x2_t)two, (int16x2_t)0x00010001, total);                     \
	} while (0)
	for (; elements >= 8; elements -= 8, from += 8, to += 4 * WINDOWS) {
		TWO(0);
		TWO(1);
		TWO(2);
		TWO(3);
	}
	for (; elements > 0; elements -= 2, from += 2, to += WINDOWS) {
		TWO(0);
	}
#undef TWO
	*sum = total;
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

/* Words of a row of taps, each of so many rows: those of a row are next to each other, rows are
 * `step` bytes apart in the column and `line` bytes in the input. The number of rows is 1 or more.
 * Returns the sum with their elements.
 */
TINYML_ASSEMBLY static int32_t
conv_dsp_s16_put_rows(uint32_t *to TINYML_UNSEEN, const int16_t *from TINYML_UNSEEN,
		      int32_t step TINYML_UNSEEN, int32_t line TINYML_UNSEEN,
		      int32_t rows TINYML_UNSEEN, int32_t sum TINYML_UNSEEN)
{
	/* clang-format off */
	__asm__ volatile(
		"push {r4-r7, lr}\n\t"
		"ldrd r4, r5, [sp, #20]\n\t"
		"mov r12, #0x00010001\n\t"
		"subs r4, #2\n\t"
		"blt 2f\n"
		"1:\n\t"
		"ldr r6, [r1]\n\t"
		"ldr r7, [r1, r3]\n\t"
		"add r1, r1, r3, lsl #1\n\t"
		"smlad r5, r6, r12, r5\n\t"
		"str r6, [r0]\n\t"
		"smlad r5, r7, r12, r5\n\t"
		"str r7, [r0, r2]\n\t"
		"add r0, r0, r2, lsl #1\n\t"
		"subs r4, #2\n\t"
		"bge 1b\n"
		"2:\n\t"
		"cmn r4, #1\n\t"
		"bne 3f\n\t"
		"ldr r6, [r1]\n\t"
		"smlad r5, r6, r12, r5\n\t"
		"str r6, [r0]\n"
		"3:\n\t"
		"mov r0, r5\n\t"
		"pop {r4-r7, pc}\n\t");
	/* clang-format on */
}

/* The same for a word of which one element is padding: the second one, or with a shift of 16 the
 * first one. */
static int32_t conv_dsp_s16_put_halves(uint32_t *to, const int16_t *from, int32_t step,
				       int32_t line, int32_t rows, uint32_t shift)
{
	int32_t sum = 0;

	for (; rows > 0; rows--, to += step, from += line) {
		const int32_t one = *from;

		*to = (uint32_t)(uint16_t)one << shift;
		sum += one;
	}
	return sum;
}

static void conv_dsp_s16_put_zeros(uint32_t *to, int32_t words)
{
	for (; words > 0; words--, to += WINDOWS) {
		*to = 0;
	}
}

/* Copy the narrow window at (top, left), one word of all rows of taps after the other. Returns the
 * sum of its elements.
 */
__attribute__((noinline)) static int32_t
conv_dsp_s16_gather_down(const struct tinyml_window *w, const struct conv_dsp_s16_group *g,
			 const int16_t *x, int32_t top, int32_t left, uint32_t *column)
{
	const int32_t words = w->kernel_w * g->in_c / 2, line = w->dilation_h * w->in_w * w->in_c;
	const int32_t first = left < 0 ? -left * w->in_c : 0; /* element of a row that is inside */
	const int32_t end = (w->in_w - left) * w->in_c;       /* what follows is not */
	const struct tinyml_taps_s16 rows =
		tinyml_taps_s16(top, w->kernel_h, w->dilation_h, w->in_h);
	const int32_t after = w->kernel_h - rows.first - rows.count, step = WINDOWS * words;
	int32_t sum = 0;

	if (g->padded != g->elements) {
		column[step * w->kernel_h] = 0;
	}
	if (rows.count <= 0) {
		conv_dsp_s16_put_zeros(column, words * w->kernel_h);
		return 0;
	}
	conv_dsp_s16_put_zeros(column, words * rows.first);
	column += step * rows.first;
	conv_dsp_s16_put_zeros(&column[step * rows.count], words * after);
	x += ((top + rows.first * w->dilation_h) * w->in_w + left) * w->in_c;
	for (int32_t at = 0; at < 2 * words; at += 2, column += WINDOWS) {
		if (at >= first && at + 1 < end) {
			sum = conv_dsp_s16_put_rows(column, &x[at], 4 * step, 2 * line, rows.count,
						    sum);
		} else if (at + 1 >= first && at < end) {
			const bool second = at < first;

			sum += conv_dsp_s16_put_halves(column, &x[at + second], step, line,
						       rows.count, second ? 16 : 0);
		} else {
			for (int32_t i = 0; i < rows.count; i++) {
				column[i * step] = 0;
			}
		}
	}
	return sum;
}

/* Copy the window at (top, left), of which x is the first channel, into a column. */
static void conv_dsp_s16_gather(const struct tinyml_window *w, const struct conv_dsp_s16_group *g,
				const int16_t *x, int32_t top, int32_t left, uint32_t *column,
				int32_t *sum)
{
	const int32_t taps = g->taps, run = taps * g->in_c;
	const bool inside = conv_dsp_s16_inside(w, top, left);

	if (!inside || g->one_run || run % 2 != 0) {
		const int16_t *window = conv_dsp_s16_window(w, g, x, top, left, inside);

		conv_dsp_s16_put(column, window, g->padded, sum);
		return;
	}
	for (int32_t ky = 0; ky < w->kernel_h; ky++, top += w->dilation_h) {
		for (int32_t kx = 0; kx < w->kernel_w; kx += taps) {
			const int32_t col = left + kx * w->dilation_w;

			column = conv_dsp_s16_put(column, &x[(top * w->in_w + col) * w->in_c], run,
						  sum);
		}
	}
	if (g->padded != g->elements) { /* by two: their weights are zero */
		*column = 0;
	}
}

/* Copy windows that are all inside the input. */
static void conv_dsp_s16_gather_all(const struct tinyml_window *w,
				    const struct conv_dsp_s16_group *g,
				    struct conv_dsp_s16_sources *sources)
{
	const int32_t taps = g->taps, run = taps * g->in_c;
	const int32_t tap = 2 * taps * w->dilation_w * w->in_c;
	const int32_t line = 2 * w->dilation_h * w->in_w * w->in_c;
	uint32_t *to = g->columns + WINDOWS;

	if (g->one_run) {
		conv_dsp_s16_put_all(to, sources, g->padded, 0);
		return;
	}
	for (int32_t ky = 0; ky < w->kernel_h; ky++) {
		for (int32_t kx = 0; kx < w->kernel_w / taps; kx++) {
			to = conv_dsp_s16_put_all(to, sources, run, ky * line + kx * tap);
		}
	}
	if (g->padded != g->elements) {
		memset(to, 0, sizeof(*to) * WINDOWS);
	}
}

/* The sums go before the columns. */
static inline void conv_dsp_s16_put_sums(const struct conv_dsp_s16_group *g, const int32_t *sums)
{
	g->columns[0] = (uint32_t)sums[0] * UINT32_C(-128);
	g->columns[1] = (uint32_t)sums[1] * UINT32_C(-128);
	g->columns[2] = (uint32_t)sums[2] * UINT32_C(-128);
}

/* Fill columns with `count` positions of the input from x on, of which each is a window. */
static inline void conv_dsp_s16_collect_flat(const struct conv_dsp_s16_group *g, const int16_t *x,
					     int32_t step, int32_t count)
{
	struct conv_dsp_s16_sources sources = {
		.from = {x, count > 1 ? x + step : x, count > 2 ? x + 2 * step : x},
	};

	conv_dsp_s16_put_all(g->columns + WINDOWS, &sources, g->padded, 0);
	conv_dsp_s16_put_sums(g, sources.sums);
}

/* Fill columns with `count` narrow windows from a position on. */
__attribute__((noinline)) static void
conv_dsp_s16_collect_narrow(const struct tinyml_window *w, const struct conv_dsp_s16_group *g,
			    const int16_t *x, int32_t at, int32_t count)
{
	int32_t row = at / w->out_w, col = at - row * w->out_w;
	int32_t sums[WINDOWS] = {0};

	x += g->first_in;
	for (int32_t j = 0; j < count; j++) {
		sums[j] = conv_dsp_s16_gather_down(w, g, x, row * w->stride_h - w->pad_top,
						   col * w->stride_w - w->pad_left,
						   &g->columns[WINDOWS + j]);
		col++;
		if (col == w->out_w) {
			col = 0;
			row++;
		}
	}
	conv_dsp_s16_put_sums(g, sums);
}

/* Fill columns with `count` windows from a position on; what others contain does not matter. */
__attribute__((noinline)) static void conv_dsp_s16_collect(const struct tinyml_window *w,
							   const struct conv_dsp_s16_group *g,
							   const int16_t *x, int32_t at,
							   int32_t count)
{
	struct conv_dsp_s16_sources sources = {.sums = {0}};
	const int16_t *const end = &x[w->in_h * w->in_w * w->in_c];
	bool all = g->one_run || g->taps * g->in_c % 2 == 0;
	int32_t row = at / w->out_w, col = at - row * w->out_w;
	int32_t tops[WINDOWS], lefts[WINDOWS];

	x += g->first_in;
	for (int32_t j = 0; j < count; j++) {
		tops[j] = row * w->stride_h - w->pad_top;
		lefts[j] = col * w->stride_w - w->pad_left;
		all = all && conv_dsp_s16_inside(w, tops[j], lefts[j]);
		sources.from[j] = &x[(tops[j] * w->in_w + lefts[j]) * w->in_c];
		col++;
		if (col == w->out_w) {
			col = 0;
			row++;
		}
	}
	for (int32_t j = count; j < WINDOWS; j++) {
		sources.from[j] = sources.from[0];
	}
	/* what follows the last window in the input meets weights of zero */
	if (all && (!g->one_run || end - sources.from[count - 1] >= g->padded)) {
		conv_dsp_s16_gather_all(w, g, &sources);
	} else {
		for (int32_t j = 0; j < count; j++) {
			conv_dsp_s16_gather(w, g, x, tops[j], lefts[j], &g->columns[WINDOWS + j],
					    &sources.sums[j]);
		}
	}
	conv_dsp_s16_put_sums(g, sources.sums);
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

/* The walk over a last filter alone, whose pair is zeros: nothing is read behind the tables. */
struct conv_dsp_s16_odd {
	struct conv_dsp_s16_walk walk;
	int32_t bias[2];
	int32_t factor[2];
	uint8_t shift[2];
};

/* What is the same for all positions of a group of `out_c` filters. */
static void conv_dsp_s16_prepare(const struct tinyml_conv_dsp_s16 *p,
				 const struct conv_dsp_s16_group *g, int32_t first_out,
				 int32_t out_c, int32_t step, struct conv_dsp_s16_walk *walk,
				 struct conv_dsp_s16_odd *odd)
{
	const int32_t fours = g->padded / 4 - 1; /* the first ones are no part of a turn */
	const int32_t last = first_out + out_c - 1;

	walk->columns = g->columns;
	walk->bias = &p->bias[first_out];
	walk->columns_end = g->columns + (1 + g->padded / 2) * WINDOWS;
	walk->skipped = fours == 0 ? TURN * FOUR_BYTES + CHECK_BYTES
				   : (TURN - 1 - (fours - 1) % TURN) * FOUR_BYTES;
	walk->factor = &p->factor[first_out];
	walk->shift = p->shift != NULL ? &p->shift[first_out] : NULL;
	walk->step = 2 * step;
	walk->low = (uint16_t)p->out_min * UINT32_C(0x10001);
	walk->high = (uint16_t)p->out_max * UINT32_C(0x10001);
	walk->rare = (p->shift != NULL ? SHIFTS : 0) |
		     (p->out_min == 0 && p->out_max == INT16_MAX ? 0 : LIMITS);
	walk->count = WINDOWS;
	walk->both = 1;
	if (out_c % 2 != 0) {
		odd->bias[0] = p->bias[last];
		odd->bias[1] = 0;
		odd->factor[0] = p->factor[last];
		odd->factor[1] = 0;
		odd->shift[0] = p->shift != NULL ? p->shift[last] : 0;
		odd->shift[1] = 1;
		odd->walk = *walk;
		odd->walk.bias = odd->bias;
		odd->walk.factor = odd->factor;
		odd->walk.shift = p->shift != NULL ? odd->shift : NULL;
		odd->walk.rare |= SOME;
		odd->walk.both = 0;
	}
}

/* The outputs of pairs of filters at one position alone. Returns what follows the weights. */
__attribute__((noinline)) static const uint32_t *
conv_dsp_s16_alone(const uint32_t *weights, const struct conv_dsp_s16_walk *walk)
{
	const int32_t *bias = walk->bias, *factor = walk->factor;
	const int32_t low = (int16_t)walk->low, high = (int16_t)walk->high;
	const uint8_t *shift = walk->shift;

	for (int16_t *y = walk->y; y != walk->end; y += 2, bias += 2, factor += 2) {
		int32_t sum =
			(int32_t)(walk->columns[0] + (uint32_t)bias[0] + ((uint32_t)bias[1] << 8));
		int32_t second = bias[1];

		for (const uint32_t *x = walk->columns + WINDOWS; x != walk->columns_end;
		     x += 2 * WINDOWS, weights += 2) {
			const int16x2_t a = (int16x2_t)x[0], b = (int16x2_t)x[WINDOWS];

			sum = __smlad((int16x2_t)weights[0], a, sum);
			sum = __smlad((int16x2_t)weights[1], b, sum);
			second = __smlad(tinyml_odd_bytes(weights[0]), a, second);
			second = __smlad(tinyml_odd_bytes(weights[1]), b, second);
		}
		sum = (int32_t)((uint32_t)sum - ((uint32_t)second << 8));
		/* without shifts, factors are below 2^30 */
		if (shift == NULL) {
			y[0] = tinyml_output_s16(sum, 2 * factor[0], 1, low, high);
		} else {
			y[0] = tinyml_output_s16(sum, factor[0], shift[0], low, high);
		}
		if (walk->both != 0) {
			y[1] = shift == NULL
				       ? tinyml_output_s16(second, 2 * factor[1], 1, low, high)
				       : tinyml_output_s16(second, factor[1], shift[1], low, high);
		}
		shift += shift == NULL ? 0 : 2;
	}
	return weights;
}

/* The filters of a walk at `count` positions. */
static inline const uint32_t *conv_dsp_s16_apply(struct conv_dsp_s16_walk *walk,
						 const uint32_t *weights, int16_t *y,
						 int32_t filters, int32_t count)
{
	const int32_t usual = walk->rare;

	walk->y = y;
	walk->end = &y[filters];
	if (count == WINDOWS) {
		return conv_dsp_s16_filters(weights, walk);
	}
	if (count == 1) {
		return conv_dsp_s16_alone(weights, walk);
	}
	walk->count = count;
	walk->rare |= SOME;
	weights = conv_dsp_s16_filters(weights, walk);
	walk->count = WINDOWS;
	walk->rare = usual;
	return weights;
}

void tinyml_conv_dsp_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y,
			 void *scratch)
{
	tinyml_conv_steps_dsp_s16(p, x, y, p->window.out_c, scratch);
}

/* All positions of an image. Returns what follows the weights of the group. */
static const uint32_t *conv_dsp_s16_image(const struct tinyml_conv_dsp_s16 *p,
					  const struct conv_dsp_s16_group *g,
					  struct conv_dsp_s16_walk *walk,
					  struct conv_dsp_s16_odd *odd, const uint32_t *weights,
					  const int16_t *x, int16_t *y, int32_t step)
{
	const struct tinyml_window *w = &p->window;
	const int32_t positions = w->out_h * w->out_w, out_c = w->out_c / p->groups;
	const int32_t in_c = w->in_c, even = out_c & ~1;
	const uint32_t *next = weights;

	for (int32_t at = 0; at < positions; at += WINDOWS, y += WINDOWS * step) {
		const int32_t left = positions - at;
		const int32_t count = left < WINDOWS ? left : WINDOWS;

		if (g->flat) {
			conv_dsp_s16_collect_flat(g, &x[at * in_c + g->first_in], in_c, count);
		} else if (g->narrow) {
			conv_dsp_s16_collect_narrow(w, g, x, at, count);
		} else {
			conv_dsp_s16_collect(w, g, x, at, count);
		}
		next = weights;
		if (even > 0) {
			next = conv_dsp_s16_apply(walk, next, y, even, count);
		}
		if (out_c != even) {
			next = conv_dsp_s16_apply(&odd->walk, next, &y[even], 2, count);
		}
	}
	return next;
}

void tinyml_conv_steps_dsp_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y,
			       int32_t step, void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t out_c = w->out_c / p->groups;
	struct conv_dsp_s16_group g = {.in_c = w->in_c / p->groups, .columns = scratch};
	struct conv_dsp_s16_walk walk;
	struct conv_dsp_s16_odd odd;

	TINYML_ASSERT(w->in_c % p->groups == 0 && w->out_c % p->groups == 0);
	TINYML_ASSERT(TINYML_ALIGNED(scratch, 4) && TINYML_ALIGNED(p->weights, 4));
	g.elements = w->kernel_h * w->kernel_w * g.in_c;
	g.taps = w->dilation_w == 1 && p->groups == 1 ? w->kernel_w : 1;
	g.one_run = p->groups == 1 && w->kernel_h == 1 && g.taps == w->kernel_w;
	g.padded = (g.elements + 3) & ~3;
	g.flat = g.elements == g.in_c && g.elements == g.padded && w->stride_h == 1 &&
		 w->stride_w == 1 && w->pad_top == 0 && w->pad_left == 0 && w->out_w == w->in_w &&
		 w->out_h <= w->in_h;
	g.narrow = g.taps == w->kernel_w && g.taps * g.in_c % 2 == 0 &&
		   g.taps * g.in_c <= 2 * w->kernel_h;
	g.window = (int16_t *)&g.columns[(1 + g.padded / 2) * WINDOWS];
	for (int32_t n = 0; n < w->batches; n++) {
		const uint32_t *weights = (const uint32_t *)p->weights;

		if (w->out_c == 1) {
			conv_dsp_s16_single(p, &g, x, y, step);
		}
		for (int32_t i = 0; w->out_c > 1 && i < p->groups; i++) {
			g.first_in = i * g.in_c;
			conv_dsp_s16_prepare(p, &g, i * out_c, out_c, step, &walk, &odd);
			weights = conv_dsp_s16_image(p, &g, &walk, &odd, weights, x, &y[i * out_c],
						     step);
		}
		x += w->in_h * w->in_w * w->in_c;
		y += w->out_h * w->out_w * step;
	}
}

#endif /* TINYML_CORE_DSP */
