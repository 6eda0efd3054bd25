/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Tensors of floats to tensors of integers, for cores with DSP instructions and an FPU. */

#ifndef TINYML_QUANTIZE_F32_H_
#define TINYML_QUANTIZE_F32_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tinyml_quantize_f32 {
	int32_t count; /* elements: a multiple of 4, and not 0 */
	int32_t zero;
	float scale; /* from 2^-60 to 2^60 */
};

/** y = round(x / scale) + zero, limited to the type of y: what tinyml_quantize_even() and
 * tinyml_quantize_away() return, bit for bit. y may be x.
 */
void tinyml_quantize_even_f32_s8(const struct tinyml_quantize_f32 *p, const float *x, int8_t *y);
void tinyml_quantize_even_f32_s16(const struct tinyml_quantize_f32 *p, const float *x, int16_t *y);
void tinyml_quantize_away_f32_s8(const struct tinyml_quantize_f32 *p, const float *x, int8_t *y);
void tinyml_quantize_away_f32_s16(const struct tinyml_quantize_f32 *p, const float *x, int16_t *y);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_QUANTIZE_F32_H_ */
