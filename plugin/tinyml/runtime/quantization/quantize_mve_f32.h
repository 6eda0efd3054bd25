/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Blocks of four elements with Helium, which has no division. With the nearest float to 1 / scale,
 * and what that lacks, the quotient is at most one unit of its last place off. The remainder of
 * such a quotient is exact, and a correction by it gives the rounded quotient (Markstein's
 * theorem), provided that nothing is subnormal or infinite on the way: elements are limited first,
 * and scales far from 1 are left to plain C.
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

/* False if plain C has to do it. */
static inline bool quantize_mve_prepare(struct quantize_mve *q, const struct tinyml_quantize_f32 *p,
					int32_t low, int32_t high)
{
	const float scale = p->scale;

	if (!(scale > 0x1p-60f && scale < 0x1p60f)) {
		return false;
	}
	q->scale = scale;
	q->inverse = 1.0f / scale;
	q->lacking = __builtin_fmaf(-q->inverse, scale, 1.0f) * q->inverse;
	q->low = (float)(low - p->zero) * scale;
	q->high = (float)(high - p->zero) * scale;
	q->zero = p->zero;
	return true;
}

/* The loop of one rounding and type; returns how many elements it has done. */
#define QUANTIZE_MVE_LOOP(way, kind, type, lowest, highest, store)                                 \
	static inline int32_t quantize_mve_##way##_##kind(const struct tinyml_quantize_f32 *p,     \
							  const float *x, type *y)                 \
	{                                                                                          \
		struct quantize_mve q;                                                             \
                                                                                                   \
		if (!quantize_mve_prepare(&q, p, lowest, highest)) {                               \
			return 0;                                                                  \
		}                                                                                  \
		for (int32_t blocks = p->count >> 2; blocks > 0; blocks--, x += 4, y += 4) {       \
			store(y, quantize_mve_##way(&q, x));                                       \
		}                                                                                  \
		return p->count & ~3;                                                              \
	}

QUANTIZE_MVE_LOOP(even, s8, int8_t, INT8_MIN, INT8_MAX, vstrbq_s32)
QUANTIZE_MVE_LOOP(even, s16, int16_t, INT16_MIN, INT16_MAX, vstrhq_s32)
QUANTIZE_MVE_LOOP(away, s8, int8_t, INT8_MIN, INT8_MAX, vstrbq_s32)
QUANTIZE_MVE_LOOP(away, s16, int16_t, INT16_MIN, INT16_MAX, vstrhq_s32)

#define QUANTIZE_BLOCKS_EVEN(kind, p, x, y) quantize_mve_even_##kind(p, x, y)
#define QUANTIZE_BLOCKS_AWAY(kind, p, x, y) quantize_mve_away_##kind(p, x, y)

#endif /* TINYML_QUANTIZE_MVE_F32_H_ */
