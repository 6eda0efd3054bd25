/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/quantize.h>
#include <tinyml/quantize_f32.h>
#include <tinyml/tinyml.h>

/* Blocks of four elements; the last ones, and what the blocks cannot do, in plain C. */
#if TINYML_CORE_MVE && (__ARM_FEATURE_MVE & 2)
#include "quantize_mve_f32.h"
#elif TINYML_CORE_DSP && defined(__ARM_FP) && (__ARM_FP & 4) && !defined(__SOFTFP__)
#include "quantize_vfp_f32.h"
#else
#define QUANTIZE_BLOCKS_EVEN(kind, p, x, y) 0
#define QUANTIZE_BLOCKS_AWAY(kind, p, x, y) 0
#endif

#define QUANTIZE_FUNCTION(way, WAY, kind, type, low, high)                                         \
	void tinyml_quantize_##way##_f32_##kind(const struct tinyml_quantize_f32 *p,               \
						const float *x, type *y)                           \
	{                                                                                          \
		const struct tinyml_quantize_f32 q = *p; /* y does not alias a copy */             \
		int32_t i = QUANTIZE_BLOCKS_##WAY(kind, &q, x, y);                                 \
                                                                                                   \
		for (; i < q.count; i++) {                                                         \
			y[i] = (type)tinyml_quantize_##way(x[i], q.scale, q.zero, low, high);      \
		}                                                                                  \
	}

QUANTIZE_FUNCTION(even, EVEN, s8, int8_t, INT8_MIN, INT8_MAX)
QUANTIZE_FUNCTION(even, EVEN, s16, int16_t, INT16_MIN, INT16_MAX)
QUANTIZE_FUNCTION(away, AWAY, s8, int8_t, INT8_MIN, INT8_MAX)
QUANTIZE_FUNCTION(away, AWAY, s16, int16_t, INT16_MIN, INT16_MAX)
