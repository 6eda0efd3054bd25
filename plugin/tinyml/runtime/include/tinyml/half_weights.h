/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Float layers whose weights are half-precision numbers: every table begins at a multiple of 4. */

#ifndef TINYML_HALF_WEIGHTS_H_
#define TINYML_HALF_WEIGHTS_H_

#include <stdbool.h>
#include <stdint.h>

#include <tinyml/conv.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tinyml_dense_f32_f16 {
	int32_t rows;
	int32_t inputs;
	int32_t outputs;
	const uint16_t *weights; /* in the order of struct tinyml_dense_f32 */
	const float *bias;       /* one per output, or NULL */
	float out_min;
	float out_max;
};

struct tinyml_conv_f32_f16 {
	struct tinyml_window window;
	int16_t groups;
	bool from_the_end; /* compute the last position first */
	float out_min;
	float out_max;
	const uint16_t *weights; /* in the order of struct tinyml_conv_f32; each group has an even
				    number of elements */
	const float *bias;       /* one per output channel, or NULL */
};

/** See struct tinyml_conv_apart_f32. */
struct tinyml_conv_apart_f32_f16 {
	struct tinyml_conv_f32_f16 conv;
	int32_t step; /* elements from an output position to the next one in a row */
	int32_t line; /* elements from a row of outputs to the next */
};

struct tinyml_depthwise_conv_f32_f16 {
	struct tinyml_window window;
	float out_min;
	float out_max;
	const uint16_t *weights; /* (kernel_h, kernel_w, out_c), out_c rounded up to an even
				    number */
	const float *bias;       /* one per output channel, or NULL */
};

void tinyml_dense_f32_f16(const struct tinyml_dense_f32_f16 *p, const float *x, float *y);
void tinyml_conv_f32_f16(const struct tinyml_conv_f32_f16 *p, const float *x, float *y);
void tinyml_conv_apart_f32_f16(const struct tinyml_conv_apart_f32_f16 *p, const float *x, float *y);
void tinyml_depthwise_conv_f32_f16(const struct tinyml_depthwise_conv_f32_f16 *p, const float *x,
				   float *y);

/** The same with products that are added up in float16: see docs/floats.md. The order of weights is
 * that of struct tinyml_sums_f16. Scratch: two rows, or windows, as float16, of which the second
 * begins at a multiple of four bytes.
 */
void tinyml_dense_f16(const struct tinyml_dense_f32_f16 *p, const float *x, float *y,
		      void *scratch);
void tinyml_conv_f16(const struct tinyml_conv_f32_f16 *p, const float *x, float *y, void *scratch);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_HALF_WEIGHTS_H_ */
