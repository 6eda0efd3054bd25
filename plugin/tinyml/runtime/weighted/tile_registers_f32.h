/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The tiles of tile_f32.h for cores with 32 floating-point registers, which hold the sums of both
 * windows. Compilers leave an array in memory unless all of its indices are constants.
 */

#ifndef TINYML_TILE_REGISTERS_F32_H_
#define TINYML_TILE_REGISTERS_F32_H_

#include <stdbool.h>

/* clang-format off */
#define TINYML_TILE_EACH(filters, what)                                                            \
	do {                                                                                       \
		what(0); what(1); what(2); what(3);                                                \
		if ((filters) == 8) {                                                              \
			what(4); what(5); what(6); what(7);                                        \
		}                                                                                  \
	} while (0)
/* clang-format on */

static inline __attribute__((always_inline)) void
tinyml_tile_registers_f32(const struct tinyml_tile_f32 *t, int32_t filters, bool two,
			  const float *x0, const float *x1, const tinyml_weight_f32 *w, float *y0,
			  float *y1)
{
	const int32_t x_skip = t->x_skip / (int32_t)sizeof(float);
	const int32_t w_skip = t->w_skip / (int32_t)sizeof(tinyml_weight_f32);
	float a[8], b[8];

#define BEGIN(i) (a[i] = t->start0[i], b[i] = two ? t->start1[i] : 0.0f)
	TINYML_TILE_EACH(filters, BEGIN);
#undef BEGIN
	for (int32_t row = t->rows; row > 0; row--) {
		for (int32_t k = t->count; k > 0; k--, w += filters) {
			const float x = *x0++, other = two ? *x1++ : 0.0f;

#define STEP(i)                                                                                    \
	do {                                                                                       \
		const float weight = tinyml_weight_value(w[i]);                                    \
		a[i] = tinyml_fused_f32(x, weight, a[i]);                                          \
		b[i] = two ? tinyml_fused_f32(other, weight, b[i]) : 0.0f;                         \
	} while (0)
			TINYML_TILE_EACH(filters, STEP);
#undef STEP
		}
		x0 += x_skip;
		x1 += x_skip;
		w += w_skip;
	}
#define END(i)                                                                                     \
	do {                                                                                       \
		const float bias = t->bias[i];                                                     \
		y0[i] = a[i] + bias;                                                               \
		if (two) {                                                                         \
			y1[i] = b[i] + bias;                                                       \
		}                                                                                  \
	} while (0)
	TINYML_TILE_EACH(filters, END);
#undef END
}

static inline void tinyml_tile_1x8_f32(const struct tinyml_tile_f32 *t, const float *x,
				       const tinyml_weight_f32 *w, float *y)
{
	tinyml_tile_registers_f32(t, 8, false, x, x, w, y, y);
}

static inline void tinyml_tile_2x8_f32(const struct tinyml_tile_f32 *t, const float *x0,
				       const float *x1, const tinyml_weight_f32 *w, float *y0,
				       float *y1)
{
	tinyml_tile_registers_f32(t, 8, true, x0, x1, w, y0, y1);
}

static inline void tinyml_tile_1x4_f32(const struct tinyml_tile_f32 *t, const float *x,
				       const tinyml_weight_f32 *w, float *y)
{
	tinyml_tile_registers_f32(t, 4, false, x, x, w, y, y);
}

static inline void tinyml_tile_2x4_f32(const struct tinyml_tile_f32 *t, const float *x0,
				       const float *x1, const tinyml_weight_f32 *w, float *y0,
				       float *y1)
{
	tinyml_tile_registers_f32(t, 4, true, x0, x1, w, y0, y1);
}

#undef TINYML_TILE_EACH

#endif /* TINYML_TILE_REGISTERS_F32_H_ */
