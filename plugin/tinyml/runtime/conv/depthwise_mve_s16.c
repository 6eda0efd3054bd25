/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise convolutions with int16 activations and Helium: eight channels of a position at a time,
 * then four. */

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "../weighted/assembly.h"
#include "../weighted/mve_s16.h"

/* The taps of a window that lie inside the input. */
struct depthwise_mve_s16_taps {
	int32_t rows;
	int32_t columns;
	int32_t row_step; /* elements of the input from a row of taps to the next */
	int32_t tap_step; /* from a tap to the next */
	int32_t row_wide; /* the same for weights */
	int32_t wide;
};

/* What the walk over the channels of a position reads. */
struct depthwise_mve_s16_walk {
	const int32_t *bias; /* these seven are read with one instruction */
	const int32_t *factor;
	const uint8_t *shift;
	int32_t tap_step; /* bytes of the input from a tap to the next */
	int32_t wide;     /* bytes of the weights */
	int32_t row_skip; /* bytes of the input from the last tap of a row to the next row */
	int32_t columns;  /* 1 to 3 */
	int32_t row_wide; /* bytes of the weights, as row_skip */
	int32_t rows;
	const int32_t *end; /* of the biases of whole eights */
	int16_t low[8];
	int16_t high[8];
};
TINYML_OFFSET(struct depthwise_mve_s16_walk, bias, 0);
TINYML_OFFSET(struct depthwise_mve_s16_walk, factor, 4);
TINYML_OFFSET(struct depthwise_mve_s16_walk, shift, 8);
TINYML_OFFSET(struct depthwise_mve_s16_walk, tap_step, 12);
TINYML_OFFSET(struct depthwise_mve_s16_walk, wide, 16);
TINYML_OFFSET(struct depthwise_mve_s16_walk, row_skip, 20);
TINYML_OFFSET(struct depthwise_mve_s16_walk, columns, 24);
TINYML_OFFSET(struct depthwise_mve_s16_walk, row_wide, 28);
TINYML_OFFSET(struct depthwise_mve_s16_walk, rows, 32);
TINYML_OFFSET(struct depthwise_mve_s16_walk, end, 36);
TINYML_OFFSET(struct depthwise_mve_s16_walk, low, 40);
TINYML_OFFSET(struct depthwise_mve_s16_walk, high, 56);

/* The same for kernels of up to three taps in a row, whose rows are not loops. Compilers do not
 * find enough registers for it.
 */
TINYML_ASSEMBLY static void
depthwise_mve_s16_narrow(const int16_t *x TINYML_UNSEEN, const int8_t *weights TINYML_UNSEEN,
			 int16_t *y TINYML_UNSEEN,
			 const struct depthwise_mve_s16_walk *walk TINYML_UNSEEN)
{
	/* clang-format off */
#define TAP                                                                                        \
	"vldrh.16 q2, [r12]\n\t"                                                                   \
	"vldrb.s16 q3, [r3]\n\t"                                                                   \
	"vmullb.s16 q4, q2, q3\n\t"                                                                \
	"vadd.i32 q0, q0, q4\n\t"                                                                  \
	"vmullt.s16 q4, q2, q3\n\t"                                                                \
	"vadd.i32 q1, q1, q4\n\t"
#define NEXT                                                                                       \
	"add r12, r7\n\t"                                                                          \
	"add r3, r8\n\t"
	__asm__ volatile(
		"push {r3-r11, lr}\n\t"
		"vpush {d8-d13}\n\t"
		"vldrh.16 q5, [r3, #40]\n\t"
		"vldrh.16 q6, [r3, #56]\n\t"
		"ldm r3, {r4-r10}\n"
		"1:\n\t" /* eight channels: those with even numbers in q0, the others in q1 */
		"vld20.32 {q0, q1}, [r4]\n\t"
		"vld21.32 {q0, q1}, [r4]!\n\t"
		"ldr lr, [r3, #32]\n\t"
		"ldr r11, [r3, #28]\n\t"
		"mov r12, r0\n\t"
		"mov r3, r1\n\t"
		"cmp lr, #0\n\t"
		"ble 5f\n\t"
		"cmp r10, #2\n"
		"2:\n\t" /* a row of taps: the flags say how many, and nothing changes them */
		"blt 4f\n\t"
		"beq 3f\n\t"
		TAP
		NEXT
		"3:\n\t"
		TAP
		NEXT
		"4:\n\t"
		TAP
		"add r12, r9\n\t"
		"add r3, r11\n\t"
		"le lr, 2b\n"
		"5:\n\t"
		"ldr r3, [sp, #48]\n\t"
		"vld20.32 {q3, q4}, [r5]\n\t"
		"vld21.32 {q3, q4}, [r5]!\n\t"
		"vldrb.u16 q2, [r6], #8\n\t"
		"vmulh.s32 q0, q0, q3\n\t"
		"vneg.s16 q2, q2\n\t"
		"vmulh.s32 q1, q1, q4\n\t"
		"vmovlb.s16 q3, q2\n\t"
		"vmovlt.s16 q2, q2\n\t"
		"vrshl.s32 q0, q0, q3\n\t"
		"vrshl.s32 q1, q1, q2\n\t"
		"ldr lr, [r3, #36]\n\t"
		"vqmovnb.s32 q0, q0\n\t"
		"vqmovnt.s32 q0, q1\n\t"
		"add r0, #16\n\t"
		"vmax.s16 q0, q0, q5\n\t"
		"add r1, #8\n\t"
		"vmin.s16 q0, q0, q6\n\t"
		"cmp r4, lr\n\t"
		"vstrh.16 q0, [r2], #16\n\t"
		"bne 1b\n\t"
		"vpop {d8-d13}\n\t"
		"pop {r3-r11, pc}\n\t");
	/* clang-format on */
#undef TAP
#undef NEXT
}

/* Eight channels at a time, as many as there are. Returns the number of channels. */
static int32_t depthwise_mve_s16_eights(const struct tinyml_conv_dsp_s16 *p,
					const struct depthwise_mve_s16_taps *t, const int16_t *x,
					const int8_t *weights, int16_t *y)
{
	int32_t c = 0;

	for (; c + 8 <= p->window.in_c; c += 8) {
		const int16_t *line = &x[c];
		const int8_t *taps = &weights[c];
		const int32x4x2_t bias = vld2q_s32(&p->bias[c]);
		int32x4_t even = bias.val[0], odd = bias.val[1];
		int32x4x2_t factor;
		int16x8_t shift, out;

		for (int32_t i = t->rows; i > 0; i--, line += t->row_step, taps += t->row_wide) {
			const int16_t *from = line;
			const int8_t *tap = taps;

			for (int32_t j = t->columns; j > 0; j--) {
				const int16x8_t a = vld1q_s16(from), b = vldrbq_s16(tap);

				even = vaddq_s32(even, vmullbq_int_s16(a, b));
				odd = vaddq_s32(odd, vmulltq_int_s16(a, b));
				from += t->tap_step;
				tap += t->wide;
			}
		}
		factor = vld2q_s32(&p->factor[c]);
		shift = vnegq_s16(vreinterpretq_s16_u16(vldrbq_u16(&p->shift[c])));
		even = vrshlq_s32(vmulhq_s32(even, factor.val[0]), vmovlbq_s16(shift));
		odd = vrshlq_s32(vmulhq_s32(odd, factor.val[1]), vmovltq_s16(shift));
		out = vqmovntq_s32(vqmovnbq_s32(vreinterpretq_s16_s32(even), even), odd);
		out = vmaxq_s16(out, vdupq_n_s16(p->out_min));
		vst1q_s16(&y[c], vminq_s16(out, vdupq_n_s16(p->out_max)));
	}
	return c;
}

/* The channels from `c` on, four at a time. */
static void depthwise_mve_s16_fours(const struct tinyml_conv_dsp_s16 *p,
				    const struct depthwise_mve_s16_taps *t, const int16_t *x,
				    const int8_t *weights, int32_t c, int16_t *y)
{
	for (; c < p->window.in_c; c += 4) {
		const mve_pred16_t some = vctp32q((uint32_t)(p->window.in_c - c));
		const int16_t *line = &x[c];
		const int8_t *taps = &weights[c];
		int32x4_t sum = vldrwq_z_s32(&p->bias[c], some);

		for (int32_t i = t->rows; i > 0; i--, line += t->row_step, taps += t->row_wide) {
			const int16_t *from = line;
			const int8_t *tap = taps;

			for (int32_t j = t->columns; j > 0; j--) {
				sum = vaddq_s32(
					sum, vmulq_s32(vldrhq_z_s32(from, some), vldrbq_s32(tap)));
				from += t->tap_step;
				tap += t->wide;
			}
		}
		sum = tinyml_outputs_mve_s16(
			sum, vldrwq_z_s32(&p->factor[c], some),
			vnegq_s32(vreinterpretq_s32_u32(vldrbq_z_u32(&p->shift[c], some))),
			p->out_min, p->out_max);
		vstrhq_p_s32(&y[c], sum, some);
	}
}

/* The channels in whole eights of a window of up to three taps in a row. Returns how many. */
static int32_t depthwise_mve_s16_threes(struct depthwise_mve_s16_walk *walk,
					const struct depthwise_mve_s16_taps *t, const int16_t *x,
					const int8_t *weights, int16_t *y)
{
	walk->row_skip = 2 * (t->row_step - (t->columns - 1) * t->tap_step);
	walk->row_wide = t->row_wide - (t->columns - 1) * t->wide;
	walk->columns = t->columns;
	walk->rows = t->columns > 0 ? t->rows : 0;
	depthwise_mve_s16_narrow(x, weights, y, walk);
	return (int32_t)(walk->end - walk->bias);
}

void tinyml_depthwise_mve_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y)
{
	const struct tinyml_window *w = &p->window;
	const int32_t wide = (w->in_c + 3) & ~3, line = w->in_w * w->in_c;
	const bool narrow = w->kernel_w <= 3 && w->in_c >= 8;
	struct depthwise_mve_s16_taps taps = {
		.row_step = w->dilation_h * line,
		.tap_step = w->dilation_w * w->in_c,
		.row_wide = w->kernel_w * wide,
		.wide = wide,
	};
	struct depthwise_mve_s16_walk walk = {
		.bias = p->bias,
		.factor = p->factor,
		.shift = p->shift,
		.tap_step = 2 * taps.tap_step,
		.wide = wide,
		.end = &p->bias[w->in_c & ~7],
	};

	TINYML_ASSERT(w->in_c == w->out_c);
	vst1q_s16(walk.low, vdupq_n_s16(p->out_min));
	vst1q_s16(walk.high, vdupq_n_s16(p->out_max));
	for (int32_t n = 0; n < w->batches; n++, x += w->in_h * line) {
		for (int32_t oy = 0; oy < w->out_h; oy++) {
			const struct tinyml_span rows = tinyml_span(
				oy, w->stride_h, w->pad_top, w->kernel_h, w->dilation_h, w->in_h);
			const int16_t *const top =
				&x[(rows.start + rows.first * w->dilation_h) * line];
			const int8_t *const first = &p->weights[rows.first * taps.row_wide];

			taps.rows = rows.end - rows.first;
			for (int32_t ox = 0; ox < w->out_w; ox++, y += w->out_c) {
				const struct tinyml_span cols =
					tinyml_span(ox, w->stride_w, w->pad_left, w->kernel_w,
						    w->dilation_w, w->in_w);
				const int32_t col = cols.start + cols.first * w->dilation_w;
				const int16_t *const from = &top[col * w->in_c];
				const int8_t *const weights = &first[cols.first * wide];
				int32_t done;

				taps.columns = cols.end - cols.first;
				done = narrow ? depthwise_mve_s16_threes(&walk, &taps, from,
									 weights, y)
					      : depthwise_mve_s16_eights(p, &taps, from, weights,
									 y);
				if (done < w->in_c) {
					depthwise_mve_s16_fours(p, &taps, from, weights, done, y);
				}
			}
		}
	}
}

#endif /* TINYML_CORE_MVE */
