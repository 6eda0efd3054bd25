/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Pools over NHWC tensors. */

#ifndef TINYML_POOL_H_
#define TINYML_POOL_H_

#include <stdbool.h>

#include <tinyml/conv.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tinyml_pool_s8 {
	struct tinyml_window window;
	int16_t shift;
	int16_t out_min;
	int16_t out_max;
	int32_t factor;
	int32_t offset;
};

/** The mean of each window: (sum * factor + offset) >> shift, limited.
 *
 * For cores with packed arithmetic. Channels are a multiple of 8, and a window has at most 255
 * elements: 16 bits hold their sum. All windows have the same number. The output may be written
 * over the input if no window begins before its output.
 */
void tinyml_average_pool_s8(const struct tinyml_pool_s8 *p, const int8_t *x, int8_t *y);

struct tinyml_pool_s16 {
	struct tinyml_window window;
	int16_t out_min;
	int16_t out_max;
	bool to_even; /* halves; else away from zero */
};

/** The mean of the elements of each window that are inside the input, rounded to nearest, limited.
 *
 * For cores with packed arithmetic. Channels are a multiple of 8. Every window has an element, and
 * 32 bits hold the sums. The output may be written over the input if no window begins before its
 * output.
 */
void tinyml_average_pool_s16(const struct tinyml_pool_s16 *p, const int16_t *x, int16_t *y);

struct tinyml_pool_f32 {
	struct tinyml_window window;
	float divisor; /* of a mean; 0: how many elements of the window are inside the input */
	float out_min; /* may be -INFINITY */
	float out_max; /* may be INFINITY */
};

/** The largest element, and the mean, of each window, limited; for cores with Helium, or with
 * RISC-V's vectors of floats.
 *
 * A NaN among the elements is the result. Helium takes subnormal numbers for zeros. The output may
 * be written over the input if no window begins before its output.
 */
void tinyml_max_pool_mve_f32(const struct tinyml_pool_f32 *p, const float *x, float *y);
void tinyml_average_pool_mve_f32(const struct tinyml_pool_f32 *p, const float *x, float *y);
void tinyml_max_pool_rvv_f32(const struct tinyml_pool_f32 *p, const float *x, float *y);
void tinyml_average_pool_rvv_f32(const struct tinyml_pool_f32 *p, const float *x, float *y);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_POOL_H_ */
