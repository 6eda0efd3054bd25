/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions with int16 activations and Helium: four windows meet two filters at a time, eight
 * elements of each. VMLADAV requires its sum in an even register; all eight are in use. */

#include <string.h>

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "../weighted/assembly.h"
#include "../weighted/mve_s16.h"

#define WINDOWS 4
#define LANES   8

struct conv_mve_s16_group {
	int32_t first_in;
	int32_t in_c;
	int32_t elements; /* of a filter */
	int32_t vectors;
	int16_t *columns; /* vectors of four windows in turn */
	int16_t *window;  /* one that is collected first */
};

/* Sums of two filters at four windows: takes both biases from `sums`, and leaves those of the first
 * filter, then those of the second there. Returns what follows the weights. */
TINYML_ASSEMBLY static const int8_t *conv_mve_s16_dot(const int8_t *weights TINYML_UNSEEN,
						      const int16_t *columns TINYML_UNSEEN,
						      int32_t vectors TINYML_UNSEEN,
						      int32_t *sums TINYML_UNSEEN)
{
	/* clang-format off */
	__asm__ volatile(
		"push {r3-r11, lr}\n\t"
		"mov r5, r2\n\t"
		"mov r7, r3\n\t"
		"mov r3, r1\n\t"
		"mov r1, r0\n\t"
		"ldrd r0, r8, [r7]\n\t"
		"mov r2, r0\n\t"
		"mov r4, r0\n\t"
		"mov r6, r0\n\t"
		"mov r10, r8\n\t"
		"mov r12, r8\n\t"
		"mov lr, r8\n"
		"1:\n\t"
		"vldrb.s16 q0, [r1], #8\n\t"
		"vldrh.16 q2, [r3], #64\n\t"
		"vldrb.s16 q1, [r1], #8\n\t"
		"vmladava.s16 r0, q0, q2\n\t"
		"vldrh.16 q3, [r3, #-48]\n\t"
		"vmladava.s16 r8, q1, q2\n\t"
		"vmladava.s16 r2, q0, q3\n\t"
		"vldrh.16 q2, [r3, #-32]\n\t"
		"vmladava.s16 r10, q1, q3\n\t"
		"vmladava.s16 r4, q0, q2\n\t"
		"vldrh.16 q3, [r3, #-16]\n\t"
		"vmladava.s16 r12, q1, q2\n\t"
		"vmladava.s16 r6, q0, q3\n\t"
		"subs r5, #1\n\t"
		"vmladava.s16 lr, q1, q3\n\t"
		"bne 1b\n\t"
		"strd r0, r2, [r7]\n\t"
		"strd r4, r6, [r7, #8]\n\t"
		"strd r8, r10, [r7, #16]\n\t"
		"strd r12, lr, [r7, #24]\n\t"
		"mov r0, r1\n\t"
		"pop {r3-r11, pc}\n\t");
	/* clang-format on */
}

/* Whole vectors, the last one filled up with zeros, become those of a column. */
static int16_t *conv_mve_s16_put(int16_t *column, const int16_t *from, int32_t elements)
{
	for (; elements > 0; elements -= LANES, from += LANES, column += WINDOWS * LANES) {
		vst1q_s16(column, vldrhq_z_s16(from, vctp16q((uint32_t)elements)));
	}
	return column;
}

/* Copy the window at (top, left) into a column. */
static void conv_mve_s16_gather(const struct tinyml_conv_dsp_s16 *p,
				const struct conv_mve_s16_group *g, const int16_t *x, int32_t top,
				int32_t left, int16_t *column)
{
	const struct tinyml_window *w = &p->window;
	/* Elements that are adjacent in the input: a row of the kernel, or a tap. */
	const bool rows = w->dilation_w == 1 && p->groups == 1;
	const int32_t taps = rows ? w->kernel_w : 1, run = taps * g->in_c;
	const bool inside = top >= 0 && left >= 0 &&
			    top + (w->kernel_h - 1) * w->dilation_h < w->in_h &&
			    left + (w->kernel_w - 1) * w->dilation_w < w->in_w;
	const bool straight = inside && (run % LANES == 0 || run == g->elements);
	int16_t *to = g->window;

	if (!inside) {
		memset(to, 0, 2 * (size_t)g->elements);
	}
	for (int32_t ky = 0; ky < w->kernel_h; ky++, top += w->dilation_h) {
		for (int32_t kx = 0; kx < w->kernel_w; kx += taps, to += run) {
			const int32_t col = left + kx * w->dilation_w, behind = w->in_w - col;
			const int32_t before = col < 0 ? -col : 0;
			const int32_t count = (behind < taps ? behind : taps) - before;
			const int16_t *from = &x[(top * w->in_w + col) * w->in_c + g->first_in];

			if (straight) {
				column = conv_mve_s16_put(column, from, run);
			} else if (top >= 0 && top < w->in_h && count > 0) {
				tinyml_copy_s16(&to[before * g->in_c], &from[before * g->in_c],
						count * g->in_c);
			}
		}
	}
	if (!straight) {
		conv_mve_s16_put(column, g->window, g->elements);
	}
}

/* All filters of a group at `count` positions. */
static const int8_t *conv_mve_s16_apply(const struct tinyml_conv_dsp_s16 *p,
					const struct conv_mve_s16_group *g, const int8_t *weights,
					int32_t first_out, int32_t out_c, int16_t *y, int32_t count)
{
	const uint32x4_t places = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)p->window.out_c);
	const mve_pred16_t some = vctp32q((uint32_t)count);

	for (int32_t oc = first_out; oc < first_out + out_c; oc += 2) {
		const bool both = oc + 1 < first_out + out_c;
		int32_t sums[2 * WINDOWS] = {p->bias[oc], both ? p->bias[oc + 1] : 0};

		weights = conv_mve_s16_dot(weights, g->columns, g->vectors, sums);
		for (int32_t i = 0; i <= both; i++) {
			const int32x4_t factor = vdupq_n_s32(p->factor[oc + i]);
			const int32x4_t shift = vdupq_n_s32(-(int32_t)p->shift[oc + i]);
			const int32x4_t out =
				tinyml_outputs_mve_s16(vld1q_s32(&sums[i * WINDOWS]), factor, shift,
						       p->out_min, p->out_max);

			vstrhq_scatter_shifted_offset_p_s32(&y[oc + i], places, out, some);
		}
	}
	return weights;
}

void tinyml_conv_mve_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y,
			 void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t positions = w->out_h * w->out_w, out_c = w->out_c / p->groups;
	struct conv_mve_s16_group g = {.in_c = w->in_c / p->groups, .columns = scratch};

	TINYML_ASSERT(w->in_c % p->groups == 0 && w->out_c % p->groups == 0);
	TINYML_ASSERT(TINYML_ALIGNED(scratch, 4));
	g.elements = w->kernel_h * w->kernel_w * g.in_c;
	g.vectors = (g.elements + LANES - 1) / LANES;
	g.window = &g.columns[g.vectors * WINDOWS * LANES];
	for (int32_t n = 0; n < w->batches; n++) {
		const int8_t *weights = p->weights;

		for (int32_t i = 0; i < p->groups; i++) {
			const int8_t *next = weights;

			g.first_in = i * g.in_c;
			for (int32_t at = 0; at < positions; at += WINDOWS) {
				const int32_t left = positions - at;
				const int32_t count = left < WINDOWS ? left : WINDOWS;

				for (int32_t j = 0; j < count; j++) {
					const int32_t row = (at + j) / w->out_w;
					const int32_t col = at + j - row * w->out_w;

					conv_mve_s16_gather(p, &g, x,
							    row * w->stride_h - w->pad_top,
							    col * w->stride_w - w->pad_left,
							    &g.columns[j * LANES]);
				}
				next = conv_mve_s16_apply(p, &g, weights, i * out_c, out_c,
							  &y[at * w->out_c], count);
			}
			weights = next;
		}
		x += w->in_h * w->in_w * w->in_c;
		y += positions * w->out_c;
	}
}

#endif /* TINYML_CORE_MVE */
