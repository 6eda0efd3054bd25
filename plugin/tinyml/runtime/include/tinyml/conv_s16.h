/* SPDX-License-Identifier: Apache-2.0 */

/** Layers with int16 activations and int8 weights. All zero points are 0. */

#ifndef TINYML_CONV_S16_H_
#define TINYML_CONV_S16_H_

#include <stdint.h>

#include <tinyml/conv.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tinyml_conv_s16 {
	struct tinyml_window window;
	int16_t groups;
	int16_t out_min;
	int16_t out_max;
	const int8_t *weights;     /* (out_c, kernel_h, kernel_w, in_c / groups) */
	const int64_t *bias;       /* one per output channel, or NULL */
	const int32_t *multiplier; /* one per output channel, as shift */
	const int8_t *shift;
};

struct tinyml_dense_s16 {
	int32_t rows;
	int32_t inputs;
	int32_t outputs;
	const int8_t *weights;     /* (outputs, inputs) */
	const int64_t *bias;       /* one per output, or NULL */
	const int32_t *multiplier; /* one per output, as shift */
	const int8_t *shift;
	int16_t out_min;
	int16_t out_max;
};

void tinyml_conv_s16(const struct tinyml_conv_s16 *p, const int16_t *x, int16_t *y);
void tinyml_dense_s16(const struct tinyml_dense_s16 *p, const int16_t *x, int16_t *y);

/** x * multiplier * 2^(shift - 31) with 16 bits of the multiplier, limited to low and high. */
static inline int16_t tinyml_narrow_s64(int64_t x, int32_t multiplier, int32_t shift, int32_t low,
					int32_t high)
{
	const int64_t factor =
		multiplier < 0x7FFF0000 ? (multiplier + (INT32_C(1) << 15)) >> 16 : 0x7FFF;
	const int32_t exponent = 15 - shift;
	const int64_t scaled = (x * factor + (INT64_C(1) << (exponent - 1))) >> exponent;

	return (int16_t)(scaled < low ? low : scaled > high ? high : scaled);
}

#ifdef __cplusplus
}
#endif

#endif /* TINYML_CONV_S16_H_ */
