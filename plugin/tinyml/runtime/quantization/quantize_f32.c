/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/quantize.h>
#include <tinyml/quantize_f32.h>
#include <tinyml/tinyml.h>

/* QUANTIZE_BLOCKS makes the function of one rounding and type. */
#if TINYML_CORE_MVE && (__ARM_FEATURE_MVE & 2)
#include "quantize_mve_f32.h"
#elif TINYML_CORE_DSP && defined(__ARM_FP) && (__ARM_FP & 4) && !defined(__SOFTFP__)
#include "quantize_vfp_f32.h"
#else
#define QUANTIZE_BLOCKS(way, kind, type, low, high)                                                \
	void tinyml_quantize_##way##_f32_##kind(const struct tinyml_quantize_f32 *p,               \
						const float *x, type *y)                           \
	{                                                                                          \
		for (int32_t i = 0; i < p->count; i++) {                                           \
			y[i] = (type)tinyml_quantize_##way(x[i], p->scale, p->zero, low, high);    \
		}                                                                                  \
	}
#endif

QUANTIZE_BLOCKS(even, s8, int8_t, INT8_MIN, INT8_MAX)
QUANTIZE_BLOCKS(even, s16, int16_t, INT16_MIN, INT16_MAX)
QUANTIZE_BLOCKS(away, s8, int8_t, INT8_MIN, INT8_MAX)
QUANTIZE_BLOCKS(away, s16, int16_t, INT16_MIN, INT16_MAX)
