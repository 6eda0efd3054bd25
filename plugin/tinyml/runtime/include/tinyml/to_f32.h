/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Layers on int8 whose sums become real numbers: (float)sum * scale + bias. */

#ifndef TINYML_TO_F32_H_
#define TINYML_TO_F32_H_

#include <stdint.h>

#include <tinyml/conv.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Filters, and what each output has. */
struct tinyml_filters_to_f32 {
	const int8_t *weights; /* one filter after the other */
	const int32_t *zeros;  /* what the zero points of input and weights add to the sums */
	const float *scales;
	const float *bias; /* or NULL */
	float out_min;
	float out_max;
	int32_t inputs; /* elements of a filter */
	int16_t weight_zero;
};

struct tinyml_dense_s8_to_f32 {
	int32_t rows;
	int32_t outputs;
	struct tinyml_filters_to_f32 filters;
};

struct tinyml_conv_s8_to_f32 {
	struct tinyml_window window;
	int16_t groups;
	int16_t in_zero;
	struct tinyml_filters_to_f32 filters; /* of (kernel_h, kernel_w, in_c / groups) elements */
};

/** y[i] for `count` filters from `first` on, all of which see the same elements x. */
void tinyml_filters_s8_to_f32(const struct tinyml_filters_to_f32 *p, const int8_t *x, int32_t first,
			      int32_t count, float *y);

void tinyml_dense_s8_to_f32(const struct tinyml_dense_s8_to_f32 *p, const int8_t *x, float *y);

/** The scratch memory holds the elements that one filter sees. */
void tinyml_conv_s8_to_f32(const struct tinyml_conv_s8_to_f32 *p, const int8_t *x, float *y,
			   void *scratch);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_TO_F32_H_ */
