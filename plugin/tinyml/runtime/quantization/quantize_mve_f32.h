/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Blocks of four elements with Helium, which has no division. With the nearest float to 1 / scale,
 * and what that lacks, the quotient is at most one unit of its last place off. The remainder of
 * such a quotient is exact, and a correction by it gives the rounded quotient (Markstein's
 * theorem), provided that nothing is subnormal or infinite on the way: elements are limited first,
 * and the compiler gives layers with scales far from 1 to its own loops.
 */

#ifndef TINYML_QUANTIZE_MVE_F32_H_
#define TINYML_QUANTIZE_MVE_F32_H_

#include <arm_mve.h>

struct quantize_mve {
	float scale, inverse, lacking; /* inverse + lacking = 1 / scale, with two floats */
	float low, high;               /* elements beyond these have the same results as these */
	int32_t zero;
};

static inline float32x4_t quantize_mve_steps(const struct quantize_mve *q, const float *x)
{
	float32x4_t v = vldrwq_f32(x);

	/* The maximum of a number and a quiet NaN is the number, that with a signalling NaN is a
	 * quiet NaN.
	 */
	__asm__("vmaxnm.f32 %q0, %q0, %q1" : "+w"(v) : "w"(vdupq_n_f32(q->low)));
	__asm__("vmaxnm.f32 %q0, %q0, %q1" : "+w"(v) : "w"(vdupq_n_f32(q->low)));
	v = vminnmq_f32(v, vdupq_n_f32(q->high));

	const float32x4_t near = vfmaq_n_f32(vmulq_n_f32(v, q->lacking), v, q->inverse);
	const float32x4_t rest = vfmsq_f32(v, near, vdupq_n_f32(q->scale));

	return vfmaq_n_f32(near, rest, q->inverse);
}

static inline int32x4_t quantize_mve_even(const struct quantize_mve *q, const float *x)
{
	return vaddq_n_s32(vcvtnq_s32_f32(quantize_mve_steps(q, x)), q->zero);
}

static inline int32x4_t quantize_mve_away(const struct quantize_mve *q, const float *x)
{
	return vaddq_n_s32(vcvtaq_s32_f32(quantize_mve_steps(q, x)), q->zero);
}

static inline struct quantize_mve quantize_mve_prepared(const struct tinyml_quantize_f32 *p,
							int32_t low, int32_t high)
{
	const float scale = p->scale, inverse = 1.0f / scale;

	return (struct quantize_mve){
		.scale = scale,
		.inverse = inverse,
		.lacking = __builtin_fmaf(-inverse, scale, 1.0f) * inverse,
		.low = (float)(low - p->zero) * scale,
		.high = (float)(high - p->zero) * scale,
		.zero = p->zero,
	};
}

#define QUANTIZE_MVE_STORE_s8(y, v)  vstrbq_s32(y, v)
#define QUANTIZE_MVE_STORE_s16(y, v) vstrhq_s32(y, v)

#define QUANTIZE_BLOCKS(way, kind, type, low, high)                                                \
	void tinyml_quantize_##way##_f32_##kind(const struct tinyml_quantize_f32 *p,               \
						const float *x, type *y)                           \
	{                                                                                          \
		const struct quantize_mve q = quantize_mve_prepared(p, low, high);                 \
                                                                                                   \
		for (int32_t i = p->count; i > 0; i -= 4, x += 4, y += 4) {                        \
			QUANTIZE_MVE_STORE_##kind(y, quantize_mve_##way(&q, x));                   \
		}                                                                                  \
	}

#endif /* TINYML_QUANTIZE_MVE_F32_H_ */
