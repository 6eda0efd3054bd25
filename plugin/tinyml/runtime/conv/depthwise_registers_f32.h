/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* depthwise_tile_f32.h for cores with 32 floating-point registers: the sums of four channels of
 * both windows. Compilers leave an array in memory unless all of its indices are constants.
 */

#ifndef TINYML_DEPTHWISE_REGISTERS_F32_H_
#define TINYML_DEPTHWISE_REGISTERS_F32_H_

/* clang-format off */
#define TINYML_DEPTHWISE_EACH(what) do { what(0); what(1); what(2); what(3); } while (0)
/* clang-format on */

static inline void depthwise_registers_f32_4(const struct depthwise_tile_f32 *t, const float *x,
					     const tinyml_weight_f32 *w, float *y)
{
	const int32_t size = sizeof(float), w_size = sizeof(tinyml_weight_f32);
	const int32_t x_step = t->x_step / size, w_step = t->w_step / w_size;
	const int32_t x_skip = t->x_skip / size, w_skip = t->w_skip / w_size;
	const float *x1 = x + t->x_other / size;
	float *const y1 = &y[t->y_other / size];
	float a[4], b[4];

#define BEGIN(i) (a[i] = t->bias[i], b[i] = a[i])
	TINYML_DEPTHWISE_EACH(BEGIN);
#undef BEGIN
	for (int32_t row = t->rows; row > 0; row--) {
		for (int32_t tap = t->taps; tap > 0; tap--) {
#define STEP(i)                                                                                    \
	do {                                                                                       \
		const float weight = tinyml_weight_value(w[i]);                                    \
		a[i] = tinyml_fused_f32(x[i], weight, a[i]);                                       \
		b[i] = tinyml_fused_f32(x1[i], weight, b[i]);                                      \
	} while (0)
			TINYML_DEPTHWISE_EACH(STEP);
#undef STEP
			x += x_step;
			x1 += x_step;
			w += w_step;
		}
		x += x_skip;
		x1 += x_skip;
		w += w_skip;
	}
#define END(i) (y[i] = a[i])
	TINYML_DEPTHWISE_EACH(END);
#undef END
#define END(i) (y1[i] = b[i])
	TINYML_DEPTHWISE_EACH(END);
#undef END
}

#undef TINYML_DEPTHWISE_EACH

#endif /* TINYML_DEPTHWISE_REGISTERS_F32_H_ */
