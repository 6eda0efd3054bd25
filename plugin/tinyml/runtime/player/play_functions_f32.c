/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Functions of float that only some models use, element by element. */

#include <tinyml/maths.h>
#include <tinyml/play_records.h>

/* Two numbers that a function may have. */
#define P0 (r->low)
#define P1 (r->high)

#define UNARY(name, value)                                                                         \
	void tinyml_play_##name##_f32(const struct tinyml_play *play)                              \
	{                                                                                          \
		const struct tinyml_play_unary_f32 *r = play->record;                              \
		const float *from = play->operand[0];                                              \
		float *to = play->operand[1];                                                      \
                                                                                                   \
		for (uint32_t left = r->count; left > 0u; left--) {                                \
			const float x = *from++;                                                   \
                                                                                                   \
			*to++ = value;                                                             \
		}                                                                                  \
	}

#define SOFTPLUS ((x > 0 ? x : 0) + tinyml_log1pf(tinyml_expf(-tinyml_fabsf(x))))

UNARY(ceil, (tinyml_ceilf(x)))
UNARY(round, (tinyml_rintf(x)))
UNARY(sin, (tinyml_sinf(x)))
UNARY(cos, (tinyml_cosf(x)))
UNARY(tan, (tinyml_tanf(x)))
UNARY(asin, (tinyml_asinf(x)))
UNARY(acos, (tinyml_acosf(x)))
UNARY(atan, (tinyml_atanf(x)))
UNARY(sinh, (tinyml_sinhf(x)))
UNARY(cosh, (tinyml_coshf(x)))
UNARY(asinh, (tinyml_asinhf(x)))
UNARY(acosh, (tinyml_acoshf(x)))
UNARY(atanh, (tinyml_atanhf(x)))
UNARY(erf, (tinyml_erff(x)))
UNARY(softplus, (SOFTPLUS))
UNARY(softsign, (x / (1.0f + tinyml_fabsf(x))))
UNARY(mish, (x * tinyml_tanhf(SOFTPLUS)))
UNARY(gelu, (0.5f * x * (1.0f + tinyml_erff(x * 0.70710678118654757f))))
UNARY(gelu_tanh,
      (0.5f * x * (1.0f + tinyml_tanhf(0.79788456080286541f * (x + 0.044715f * x * x * x)))))
UNARY(swish, (x / (1.0f + tinyml_expf(-P0 * x))))
UNARY(hard_sigmoid, (x != x ? x : tinyml_fminf(tinyml_fmaxf(P0 * x + P1, 0.0f), 1.0f)))
UNARY(hard_swish, (x * tinyml_fminf(tinyml_fmaxf(x * (1.0f / 6.0f) + 0.5f, 0.0f), 1.0f)))
UNARY(leaky_relu, (x < 0 ? P0 * x : x))
UNARY(elu, (x < 0 ? P0 * tinyml_expm1f(x) : x))
UNARY(celu, (x < 0 ? P0 * tinyml_expm1f(x / P0) : x))
UNARY(selu, (P1 * (x < 0 ? P0 * tinyml_expm1f(x) : x)))
UNARY(thresholded_relu, (x > P0 ? x : 0))
UNARY(sign, (x != x ? x : (float)((x > 0) - (x < 0))))
