/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/pool.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE && (__ARM_FEATURE_MVE & 2)

#include <arm_mve.h>

#include "pools_f32.h"

#define CHANNELS 4 /* at a time */

/* Which channels of four there are. */
struct part {
	bool whole; /* all of them: loads need no predicate */
	mve_pred16_t some;
};

static inline float32x4_t pools_mve_load(const float *at, struct part part)
{
	return part.whole ? vldrwq_f32(at) : vldrwq_z_f32(at, part.some);
}

/* In these functions, GCC would move the predicates of intrinsics through integer registers. */
#ifdef __clang__
#define REPLACE_IF(condition, how, best, a, b, v) best = vpselq_f32(v, best, how(a, b))
#else
/* clang-format off */
#define REPLACE_IF(condition, how, best, a, b, v)                                                  \
	__asm__(                                                                                   \
		"vcmp.f32 " condition ", %q[left], %q[right]\n\t"                                  \
		"vpsel %q[result], %q[other], %q[result]\n\t"                                      \
		: [result] "+w"(best) : [left] "w"(a), [right] "w"(b), [other] "w"(v) : "p0")
/* clang-format on */
#endif

static inline float32x4_t pools_mve_limited(float32x4_t v, float high)
{
	const float32x4_t limit = vdupq_n_f32(high);

	REPLACE_IF("gt", vcmpgtq_f32, v, v, limit, limit);
	return v;
}

static inline float32x4_t pools_mve_raised(float32x4_t v, float low)
{
	const float32x4_t limit = vdupq_n_f32(low);

	/* "lt" is also true of a NaN */
	REPLACE_IF("gt", vcmpgtq_f32, v, limit, v, limit);
	return v;
}

/* Of equal elements the first one, as in the loops of other cores; a NaN wins. */
static inline float32x4_t pools_mve_max(const struct pools_f32_view *view, const float *x,
					struct part part)
{
	const int32_t width = view->width, row_step = view->row_step, step = view->step;
	float32x4_t best = vdupq_n_f32(view->low);

	for (int32_t i = view->height; i > 0; i--, x += row_step) {
		const float *at = x;

		for (int32_t j = width; j > 0; j--, at += step) {
			const float32x4_t v = pools_mve_load(at, part);

			REPLACE_IF("gt", vcmpgtq_f32, best, v, best, v);
			REPLACE_IF("ne", vcmpneq_f32, best, v, v, v);
		}
	}
	return pools_mve_limited(best, view->high);
}

/* The lanes of a vector are registers of the scalar FPU, too, where GCC does not divide them. */
static inline float32x4_t pools_mve_divided(float32x4_t v, float divisor)
{
#ifdef __clang__
	return (float32x4_t){v[0] / divisor, v[1] / divisor, v[2] / divisor, v[3] / divisor};
#else
	register float32x4_t lanes __asm__("q0") = v;

	/* clang-format off */
	__asm__(
		"vdiv.f32 s0, s0, %[divisor]\n\t"
		"vdiv.f32 s1, s1, %[divisor]\n\t"
		"vdiv.f32 s2, s2, %[divisor]\n\t"
		"vdiv.f32 s3, s3, %[divisor]\n\t"
		: "+w"(lanes) : [divisor] "t"(divisor));
	/* clang-format on */
	return lanes;
#endif
}

/* Sums in the order of the loops of other cores. Helium has no division. */
static inline float32x4_t pools_mve_mean(const struct pools_f32_view *view, const float *x,
					 struct part part)
{
	const int32_t width = view->width, row_step = view->row_step, step = view->step;
	const float divisor = view->divisor;
	float32x4_t sum = vdupq_n_f32(0.0f);

	for (int32_t i = view->height; i > 0; i--, x += row_step) {
		const float *at = x;

		for (int32_t j = width; j > 0; j--, at += step) {
			sum = vaddq_f32(sum, pools_mve_load(at, part));
		}
	}
	sum = pools_mve_divided(sum, divisor);
	return pools_mve_limited(pools_mve_raised(sum, view->low), view->high);
}

#define POSITION(name, window)                                                                     \
	static __attribute__((noinline)) void name(const struct pools_f32_view *view,              \
						   const float *x, float *y)                       \
	{                                                                                          \
		int32_t left = view->channels;                                                     \
                                                                                                   \
		for (; left >= CHANNELS; left -= CHANNELS, x += CHANNELS, y += CHANNELS) {         \
			vstrwq_f32(y, window(view, x, (struct part){true, 0}));                    \
		}                                                                                  \
		if (left > 0) {                                                                    \
			const mve_pred16_t some = vctp32q((uint32_t)left);                         \
                                                                                                   \
			vstrwq_p_f32(y, window(view, x, (struct part){false, some}), some);        \
		}                                                                                  \
	}

POSITION(pools_mve_max_position, pools_mve_max)
POSITION(pools_mve_mean_position, pools_mve_mean)

void tinyml_max_pool_mve_f32(const struct tinyml_pool_f32 *p, const float *x, float *y)
{
	pools_f32_all(p, x, y, pools_mve_max_position);
}

void tinyml_average_pool_mve_f32(const struct tinyml_pool_f32 *p, const float *x, float *y)
{
	pools_f32_all(p, x, y, pools_mve_mean_position);
}

#endif /* TINYML_CORE_MVE */
