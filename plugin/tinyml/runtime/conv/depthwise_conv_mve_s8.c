/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise convolutions with Helium, sixteen channels at a time.
 *
 * Products of bytes are 16 bits wide, and so is the sum of two: 127 * 128 * 2 is below 2^15 (no
 * weight is -128). Multiplying splits a vector into its even and odd lanes, and widening does so
 * again: sum i holds channels i, i + 4, i + 8 and i + 12. Tables of channels are in that order,
 * block by block; narrowing undoes it.
 */

#include <tinyml/depthwise_conv.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "../weighted/mve_s8.h"
#include "ring_s8.h"

struct sums {
	int32x4_t s0, s1, s2, s3;
};

/* The two functions below are in assembly because they use all eight vector registers: a compiler
 * that reorders their instructions runs out of registers and spills.
 */
#define WIDEN_AND_ADD                                                                              \
	"vmovlb.s16 %q[x], %q[even]\n\t"                                                           \
	"vadd.i32 %q[s0], %q[s0], %q[x]\n\t"                                                       \
	"vmovlt.s16 %q[even], %q[even]\n\t"                                                        \
	"vadd.i32 %q[s2], %q[s2], %q[even]\n\t"                                                    \
	"vmovlb.s16 %q[x], %q[odd]\n\t"                                                            \
	"vadd.i32 %q[s1], %q[s1], %q[x]\n\t"                                                       \
	"vmovlt.s16 %q[odd], %q[odd]\n\t"                                                          \
	"vadd.i32 %q[s3], %q[s3], %q[odd]"

static inline void add_tap(struct sums *sums, const int8_t *x, const int8_t *w)
{
	int8x16_t vx, vw;
	int16x8_t even, odd;

	__asm__("vldrb.8 %q[x], [%[from]]\n\t"
		"vldrb.8 %q[w], [%[weights]]\n\t"
		"vmullb.s8 %q[even], %q[x], %q[w]\n\t"
		"vmullt.s8 %q[odd], %q[x], %q[w]\n\t" WIDEN_AND_ADD
		: [s0] "+w"(sums->s0), [s1] "+w"(sums->s1), [s2] "+w"(sums->s2),
		  [s3] "+w"(sums->s3), [x] "=&w"(vx), [w] "=&w"(vw), [even] "=&w"(even),
		  [odd] "=&w"(odd)
		: [from] "r"(x), [weights] "r"(w)
		: "memory");
}

static inline void add_two_taps(struct sums *sums, const int8_t *x0, const int8_t *x1,
				const int8_t *w)
{
	int8x16_t vx, vw;
	int16x8_t even, odd;

	__asm__("vldrb.8 %q[x], [%[first]]\n\t"
		"vldrb.8 %q[w], [%[weights]]\n\t"
		"vmullb.s8 %q[even], %q[x], %q[w]\n\t"
		"vmullt.s8 %q[odd], %q[x], %q[w]\n\t"
		"vldrb.8 %q[x], [%[second]]\n\t"
		"vldrb.8 %q[w], [%[weights], #16]\n\t"
		"vmullb.s8 %q[x], %q[x], %q[w]\n\t"
		"vadd.i16 %q[even], %q[even], %q[x]\n\t"
		"vldrb.8 %q[x], [%[second]]\n\t" /* again, because the product replaced it */
		"vmullt.s8 %q[x], %q[x], %q[w]\n\t"
		"vadd.i16 %q[odd], %q[odd], %q[x]\n\t" WIDEN_AND_ADD
		: [s0] "+w"(sums->s0), [s1] "+w"(sums->s1), [s2] "+w"(sums->s2),
		  [s3] "+w"(sums->s3), [x] "=&w"(vx), [w] "=&w"(vw), [even] "=&w"(even),
		  [odd] "=&w"(odd)
		: [first] "r"(x0), [second] "r"(x1), [weights] "r"(w)
		: "memory");
}

/* How sums become outputs. */
struct rescaling {
	const int32_t *multiplier;
	const int8_t *shift;
	int16_t zero;
	int8_t low, high;
};

/* Turn sixteen sums into bytes; their entries in the tables begin at `at`. */
static inline int8x16_t rescale_sums(const struct sums *sums, const struct rescaling *to,
				     int32_t at, bool once)
{
	const int32_t *m = &to->multiplier[at];
	const int8_t *s = &to->shift[at];
	const int32x4_t q0 = tinyml_rescale_4(sums->s0, vldrwq_s32(m), vldrbq_s32(s), once);
	const int32x4_t q1 = tinyml_rescale_4(sums->s1, vldrwq_s32(m + 4), vldrbq_s32(s + 4), once);
	const int32x4_t q2 = tinyml_rescale_4(sums->s2, vldrwq_s32(m + 8), vldrbq_s32(s + 8), once);
	const int32x4_t q3 =
		tinyml_rescale_4(sums->s3, vldrwq_s32(m + 12), vldrbq_s32(s + 12), once);
	int16x8_t even = vqmovntq_s32(vqmovnbq_s32(vuninitializedq_s16(), q0), q2);
	int16x8_t odd = vqmovntq_s32(vqmovnbq_s32(vuninitializedq_s16(), q1), q3);
	int8x16_t bytes = vuninitializedq_s8();

	even = vqaddq_n_s16(even, to->zero);
	odd = vqaddq_n_s16(odd, to->zero);
	bytes = vqmovntq_s16(vqmovnbq_s16(bytes, even), odd);
	return vminq_s8(vmaxq_s8(bytes, vdupq_n_s8(to->low)), vdupq_n_s8(to->high));
}

/* Eight channels fill a vector with two neighbouring positions. */
#define TWO_POSITIONS 8

/* All channels at one position, `at` bytes into the rows; of fewer than sixteen channels, `bytes`
 * of the outputs are written. With constants for `height` and `taps`, the size of the kernel, and
 * `once`, the code is shorter.
 */
static inline __attribute__((always_inline)) void
convolve_position(const struct tinyml_depthwise_conv_mve_s8 *p, const struct rescaling *to,
		  const int8_t *const rows[], int32_t at, int8_t *y, int32_t bytes, int32_t height,
		  int32_t taps, bool once)
{
	const int32_t channels = p->window.in_c, step = p->window.dilation_w * channels;
	const int32_t last = channels < TINYML_LANES ? 0 : channels - TINYML_LANES;
	const int32_t *bias = p->bias;
	const int8_t *k = p->weights;

	/* The last block ends with the last channel, so some channels may be computed twice. */
	for (int32_t block = 0; block < channels; block += TINYML_LANES, bias += TINYML_LANES) {
		const int32_t c = block < last ? block : last;
		struct sums sums = {vldrwq_s32(bias), vldrwq_s32(&bias[4]), vldrwq_s32(&bias[8]),
				    vldrwq_s32(&bias[12])};

#pragma GCC unroll 3
		for (int32_t ky = 0; ky < height; ky++) {
			const int8_t *x = &rows[ky][at + c];

			for (int32_t left = taps; left >= 2; left -= 2) {
				add_two_taps(&sums, x, &x[step], k);
				x += 2 * step;
				k += 2 * TINYML_LANES;
			}
			if (taps % 2 != 0) {
				add_tap(&sums, x, k);
				k += TINYML_LANES;
			}
		}
		if (channels >= TINYML_LANES) {
			vstrbq_s8(&y[c], rescale_sums(&sums, to, block, once));
		} else {
			vstrbq_p_s8(y, rescale_sums(&sums, to, block, once),
				    vctp8q((uint32_t)bytes));
		}
	}
}

/* One row of outputs. */
static inline __attribute__((always_inline)) void
convolve_row(const struct tinyml_depthwise_conv_mve_s8 *p, const int8_t *const rows[], int8_t *y,
	     int32_t height, int32_t taps, bool once)
{
	const struct tinyml_window *w = &p->window;
	const struct rescaling to = {p->multiplier, p->shift, p->out_zero, (int8_t)p->out_min,
				     (int8_t)p->out_max};
	const bool pairs = w->in_c == TWO_POSITIONS && w->stride_w == 1;
	const int32_t step = (pairs ? 2 : 1) * w->out_c, row_bytes = w->out_w * w->out_c;
	int32_t at = 0;

	for (int32_t done = 0; done < row_bytes; done += step) {
		const int32_t left = row_bytes - done;

		convolve_position(p, &to, rows, at, &y[done], left < step ? left : step, height,
				  taps, once);
		at += pairs ? step : w->stride_w * w->in_c;
	}
}

/* One function each, so that none reserves registers for the others. */
typedef void row_function(const struct tinyml_depthwise_conv_mve_s8 *p, const int8_t *const rows[],
			  int8_t *y);

__attribute__((noinline)) static void row_3x3_once(const struct tinyml_depthwise_conv_mve_s8 *p,
						   const int8_t *const rows[], int8_t *y)
{
	convolve_row(p, rows, y, 3, 3, true);
}

__attribute__((noinline)) static void row_3x3_twice(const struct tinyml_depthwise_conv_mve_s8 *p,
						    const int8_t *const rows[], int8_t *y)
{
	convolve_row(p, rows, y, 3, 3, false);
}

__attribute__((noinline)) static void row_any(const struct tinyml_depthwise_conv_mve_s8 *p,
					      const int8_t *const rows[], int8_t *y)
{
	convolve_row(p, rows, y, p->window.kernel_h, p->window.kernel_w, p->round_once);
}

void tinyml_depthwise_conv_mve_s8(const struct tinyml_depthwise_conv_mve_s8 *p, const int8_t *x,
				  int8_t *y, void *scratch)
{
	const struct tinyml_window *w = &p->window;
	const int32_t row_bytes = w->in_w * w->in_c, out_bytes = w->out_w * w->out_c;
	const int8_t *rows[TINYML_DEPTHWISE_MVE_ROWS];
	const bool square = w->kernel_h == 3 && w->kernel_w == 3;
	row_function *const row_of = !square         ? row_any
				     : p->round_once ? row_3x3_once
						     : row_3x3_twice;

	TINYML_ASSERT(w->kernel_h <= TINYML_DEPTHWISE_MVE_ROWS && w->in_c == w->out_c);
	TINYML_ASSERT(scratch != NULL || w->in_c >= TINYML_LANES);
	for (int32_t n = 0; n < w->batches; n++, x += w->in_h * row_bytes) {
		struct tinyml_ring ring = tinyml_ring(w, scratch);

		for (int32_t oy = 0; oy < w->out_h; oy++, y += out_bytes) {
			const int32_t top = oy * w->stride_h - w->pad_top;

			if (scratch != NULL) {
				tinyml_ring_fill(&ring, p, x, top + ring.count);
			}
			for (int32_t ky = 0; ky < w->kernel_h; ky++) {
				const int32_t row = top + ky * w->dilation_h;

				rows[ky] = scratch != NULL ? tinyml_ring_row(&ring, row)
							   : &x[row * row_bytes];
			}
			row_of(p, rows, y);
		}
	}
}

#endif /* TINYML_CORE_MVE */
