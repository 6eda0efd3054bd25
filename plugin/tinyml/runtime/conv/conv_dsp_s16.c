/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions with int16 activations and DSP instructions: four windows, side by side in columns,
 * meet two filters at a time. A word has two elements of both filters. */

#include <string.h>

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include "../weighted/dsp_s16.h"

#define WINDOWS 4

struct conv_dsp_s16_group {
	int32_t first_in;
	int32_t in_c;
	int32_t elements; /* of a filter */
	int32_t padded;   /* up to a multiple of four */
	uint32_t *columns;
	int16_t *window; /* one that is collected first */
};

/* Sums of two filters at four windows: takes both biases from `sums`, and leaves those of the first
 * filter, then those of the second there. Returns what follows the weights. */
TINYML_ASSEMBLY static const uint32_t *conv_dsp_s16_dot(const uint32_t *weights TINYML_UNSEEN,
							const uint32_t *columns TINYML_UNSEEN,
							const uint32_t *end TINYML_UNSEEN,
							int32_t *sums TINYML_UNSEEN)
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
	__asm__ volatile(
		"push {r2-r11, lr}\n\t"
		"ldrd r4, r8, [r3]\n\t"
		"mov r5, r4\n\t"
		"mov r6, r4\n\t"
		"mov r7, r4\n\t"
		"mov r9, r8\n\t"
		"mov r10, r8\n\t"
		"mov r11, r8\n\t"
		"sub r12, r2, r1\n\t"
		"lsls r12, r12, #26\n\t" /* four elements are 32 bytes: enter in the middle */
		"bmi 2f\n"
		"1:\n\t"
		STEP
		STEP
		"2:\n\t"
		STEP
		STEP
		"ldr r12, [sp]\n\t"
		"cmp r1, r12\n\t"
		"bne 1b\n\t"
		"ldr r3, [sp, #4]\n\t"
		"stmia r3, {r4-r11}\n\t"
		"add sp, #8\n\t"
		"pop {r4-r11, pc}\n\t");
	/* clang-format on */
#undef STEP
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
	int16_t *to = g->window;

	for (int32_t ky = 0; ky < w->kernel_h; ky++, top += w->dilation_h) {
		for (int32_t kx = 0; kx < w->kernel_w; kx += taps) {
			const int32_t col = left + kx * w->dilation_w;
			const int16_t *from = &x[(top * w->in_w + col) * w->in_c + g->first_in];
			int32_t before = 0, count = taps;

			if (inside && g->in_c % 2 == 0) {
				column = conv_dsp_s16_put(column, from, run);
				continue;
			}
			if (!inside) {
				const int32_t behind = w->in_w - col;

				before = col < 0 ? -col : 0;
				count = (behind < taps ? behind : taps) - before;
				if (top < 0 || top >= w->in_h || count <= 0) {
					before = taps;
					count = 0;
				}
				memset(to, 0, 2 * (size_t)run);
			}
			if (count > 0) {
				memcpy(&to[before * g->in_c], &from[before * g->in_c],
				       2 * (size_t)(count * g->in_c));
			}
			to += run;
		}
	}
	if (to != g->window) {
		memset(to, 0, 2 * (size_t)(g->padded - g->elements));
		column = conv_dsp_s16_put(column, g->window, g->padded);
	} else if (g->padded != g->elements) { /* by two: their weights are zero */
		*column = 0;
	}
}

/* The outputs of a filter at `count` positions. */
static inline void conv_dsp_s16_outputs(const struct tinyml_conv_dsp_s16 *p, int32_t oc,
					const int32_t *sums, int16_t *y, int32_t count)
{
	const int32_t factor = p->factor[oc], shift = p->shift[oc];
	const int32_t low = p->out_min, high = p->out_max, step = p->window.out_c;

	do {
		*y = tinyml_output_s16(*sums++, factor, shift, low, high);
		y += step;
	} while (--count > 0);
}

/* All filters of a group at `count` positions. */
static const uint32_t *conv_dsp_s16_apply(const struct tinyml_conv_dsp_s16 *p,
					  const struct conv_dsp_s16_group *g,
					  const uint32_t *weights, int32_t first_out, int32_t out_c,
					  int16_t *y, int32_t count)
{
	const uint32_t *end = g->columns + g->padded / 2 * WINDOWS;

	for (int32_t oc = first_out; oc < first_out + out_c; oc += 2) {
		const bool both = oc + 1 < first_out + out_c;
		int32_t sums[2 * WINDOWS] = {p->bias[oc], both ? p->bias[oc + 1] : 0};

		weights = conv_dsp_s16_dot(weights, g->columns, end, sums);
		conv_dsp_s16_outputs(p, oc, sums, &y[oc], count);
		if (both) {
			conv_dsp_s16_outputs(p, oc + 1, &sums[WINDOWS], &y[oc + 1], count);
		}
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
