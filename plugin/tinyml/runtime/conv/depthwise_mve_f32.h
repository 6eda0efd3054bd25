/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* depthwise_tile_f32.h for Helium: q0 and q1 are the sums of the first window, q2 and q3 those of
 * the second.
 */

#ifndef TINYML_DEPTHWISE_MVE_F32_H_
#define TINYML_DEPTHWISE_MVE_F32_H_

#include <arm_mve.h>

#include "../weighted/widen_mve_f32.h"

TINYML_OFFSET(struct depthwise_tile_f32, rows, 0);
TINYML_OFFSET(struct depthwise_tile_f32, taps, 4);
TINYML_OFFSET(struct depthwise_tile_f32, x_step, 8);
TINYML_OFFSET(struct depthwise_tile_f32, w_step, 12);
TINYML_OFFSET(struct depthwise_tile_f32, x_skip, 16);
TINYML_OFFSET(struct depthwise_tile_f32, w_skip, 20);
TINYML_OFFSET(struct depthwise_tile_f32, bias, 24);
TINYML_OFFSET(struct depthwise_tile_f32, x_other, 28);
TINYML_OFFSET(struct depthwise_tile_f32, y_other, 32);

/* Four weights in q4, so many bytes after the first one. */
/* clang-format off */
#if TINYML_HALF_WEIGHTS
#define TINYML_DEPTHWISE_W(half, whole)                                                            \
	"vldrh.u32 q4, [%[w], #" half "]\n\t"                                                      \
	TINYML_WIDEN_q4
#define TINYML_DEPTHWISE_W_REGISTER "+l"
#else
#define TINYML_DEPTHWISE_W(half, whole) "vldrw.u32 q4, [%[w], #" whole "]\n\t"
#define TINYML_DEPTHWISE_W_REGISTER "+r"
#endif
/* clang-format on */

static inline float32x4_t depthwise_mve_f32_weights(const tinyml_weight_f32 *w, mve_pred16_t some)
{
#if TINYML_HALF_WEIGHTS
	register uint32x4_t values __asm__("q0") = vldrhq_z_u32(w, some);

	__asm__("vcvtb.f32.f16 q0, q0" : "+w"(values));
	return vreinterpretq_f32_u32(values);
#else
	return vldrwq_z_f32(w, some);
#endif
}

static inline void depthwise_mve_f32_8(const struct depthwise_tile_f32 *t, const float *x,
				       const tinyml_weight_f32 *w, float *y)
{
	const float *x1;
	int32_t rows, taps, n, m;

	/* clang-format off */
	__asm__ volatile(
		"ldrd %[n], %[x1], [%[t], #24]\n\t"
		"add %[x1], %[x0]\n\t"
		"vldrw.u32 q0, [%[n]]\n\t"
		"vldrw.u32 q1, [%[n], #16]\n\t"
		"vmov q2, q0\n\t"
		"vmov q3, q1\n\t"
		"ldrd %[rows], %[taps], [%[t], #0]\n\t"
		"cmp %[rows], #0\n\t"
		"beq 4f\n\t"
		"1:\n\t"
		"ldrd %[n], %[m], [%[t], #8]\n\t"
		"dls lr, %[taps]\n\t"
		"2:\n\t"
		TINYML_DEPTHWISE_W("0", "0")
		"vldrw.u32 q5, [%[x0]]\n\t"
		"vfma.f32 q0, q5, q4\n\t"
		"vldrw.u32 q6, [%[x1]]\n\t"
		"vfma.f32 q2, q6, q4\n\t"
		TINYML_DEPTHWISE_W("8", "16")
		"vldrw.u32 q5, [%[x0], #16]\n\t"
		"vfma.f32 q1, q5, q4\n\t"
		"vldrw.u32 q6, [%[x1], #16]\n\t"
		"vfma.f32 q3, q6, q4\n\t"
		"add %[x0], %[n]\n\t"
		"add %[x1], %[n]\n\t"
		"add %[w], %[m]\n\t"
		"le lr, 2b\n\t"
		"subs %[rows], #1\n\t"
		"beq 4f\n\t"
		"ldrd %[n], %[m], [%[t], #16]\n\t"
		"add %[x0], %[n]\n\t"
		"add %[x1], %[n]\n\t"
		"add %[w], %[m]\n\t"
		"b 1b\n\t"
		"4:\n\t"
		"ldr %[n], [%[t], #32]\n\t"
		"add %[n], %[y]\n\t"
		"vstrw.32 q0, [%[y]]\n\t"
		"vstrw.32 q1, [%[y], #16]\n\t"
		"vstrw.32 q2, [%[n]]\n\t"
		"vstrw.32 q3, [%[n], #16]\n\t"
		: [x0] "+r"(x), [x1] "=&r"(x1), [w] TINYML_DEPTHWISE_W_REGISTER(w), [rows] "=&l"(rows), [taps] "=&r"(taps),
		  [n] "=&r"(n), [m] "=&r"(m)
		: [t] "r"(t), [y] "r"(y)
		: "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "cc", "memory");
	/* clang-format on */
}

/* Four channels, or what is left of them. */
static inline void depthwise_mve_f32_4(const struct depthwise_tile_f32 *t, const float *x,
				       const tinyml_weight_f32 *w, float *y, int32_t left)
{
	const int32_t size = sizeof(float), w_size = sizeof(tinyml_weight_f32);
	const mve_pred16_t some = vctp32q((uint32_t)left);
	const float *x1 = x + t->x_other / size;
	float32x4_t a = vldrwq_z_f32(t->bias, some), b = a;

	for (int32_t row = t->rows; row > 0; row--) {
		for (int32_t tap = t->taps; tap > 0; tap--) {
			const float32x4_t weights = depthwise_mve_f32_weights(w, some);

			a = vfmaq_f32(a, vldrwq_z_f32(x, some), weights);
			b = vfmaq_f32(b, vldrwq_z_f32(x1, some), weights);
			x += t->x_step / size;
			x1 += t->x_step / size;
			w += t->w_step / w_size;
		}
		x += t->x_skip / size;
		x1 += t->x_skip / size;
		w += t->w_skip / w_size;
	}
	vstrwq_p_f32(y, a, some);
	vstrwq_p_f32(&y[t->y_other / size], b, some);
}

#undef TINYML_DEPTHWISE_W
#undef TINYML_DEPTHWISE_W_REGISTER

#endif /* TINYML_DEPTHWISE_MVE_F32_H_ */
