/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Convolutions over NHWC tensors. */

#ifndef TINYML_CONV_H_
#define TINYML_CONV_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How a window moves over the input. Elements outside the input count as zero. */
struct tinyml_window {
	int16_t batches;
	int16_t in_h, in_w, in_c;
	int16_t out_h, out_w, out_c;
	int16_t kernel_h, kernel_w;
	int16_t stride_h, stride_w;
	int16_t dilation_h, dilation_w;
	int16_t pad_top, pad_left;
};

struct tinyml_conv_s8 {
	struct tinyml_window window;
	int16_t groups;
	int16_t in_zero;
	int16_t weight_zero;
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	bool round_once;           /* see tinyml_rescale_once() */
	bool from_the_end;         /* compute the last position first */
	bool transposed;           /* rows of the window are columns of the tensors */
	const int8_t *weights;     /* as the kernel wants them */
	const int32_t *bias;       /* less the part of the zero points: see folded_bias() */
	const int32_t *multiplier; /* one per output channel, as bias and shift */
	const int8_t *shift;
};

struct tinyml_conv_f32 {
	struct tinyml_window window;
	int16_t groups;
	bool from_the_end; /* compute the last position first (not in depthwise convolutions) */
	float out_min;
	float out_max;
	const float *weights;
	const float *bias; /* one per output channel, or NULL */
};

/** Weights are a stream of words, with biases, multipliers and shifts between them: see
 * ops/_stream.py.
 *
 * The scratch memory holds three columns of kernel_h * kernel_w * in_c / groups elements in whole
 * words, and one more if the channels of a group are not whole words.
 */
void tinyml_conv_s8(const struct tinyml_conv_s8 *p, const int8_t *x, int8_t *y, void *scratch);

/** The same for cores with DSP instructions; columns are two, but of int16. */
void tinyml_conv_dsp_s8(const struct tinyml_conv_s8 *p, const int8_t *x, int8_t *y, void *scratch);

/** Weights are (out_c, kernel_h, kernel_w, in_c / groups). */
void tinyml_conv_f32(const struct tinyml_conv_f32 *p, const float *x, float *y);

/** For cores with Helium, with one group and no zero point of weights. Filters come in
 * pairs, whose vectors of 16 elements alternate: see ops/_helium.py. The scratch memory holds three
 * columns.
 */
void tinyml_conv_mve_s8(const struct tinyml_conv_s8 *p, const int8_t *x, int8_t *y, void *scratch);

/** Weights are (out_c, kernel_h, kernel_w); out_c is a multiple of in_c; groups is not used.
 *
 * The scratch memory holds one channel with its padding, as far as windows reach. `way` fits the
 * kernel: see ops/_planes.py. Only those that are named are linked.
 */
struct tinyml_depthwise;
extern const struct tinyml_depthwise tinyml_depthwise_3x3;         /* stride 1 along rows */
extern const struct tinyml_depthwise tinyml_depthwise_3x3_strided; /* any other stride */
extern const struct tinyml_depthwise tinyml_depthwise_any;
void tinyml_depthwise_conv_s8(const struct tinyml_conv_s8 *p, const int8_t *x, int8_t *y,
			      void *scratch, const struct tinyml_depthwise *way);

/** The same for cores with DSP instructions. They read the plane in words, up to three bytes past
 * its end; behind that are, for all kernels but 3x3, the weights of a channel as int16.
 */
struct tinyml_depthwise_dsp;
extern const struct tinyml_depthwise_dsp tinyml_depthwise_dsp_3x3;
extern const struct tinyml_depthwise_dsp tinyml_depthwise_dsp_3x3_strided;
extern const struct tinyml_depthwise_dsp tinyml_depthwise_dsp_two_words; /* rows of 5 to 7 */
extern const struct tinyml_depthwise_dsp tinyml_depthwise_dsp_two_words_strided;
extern const struct tinyml_depthwise_dsp tinyml_depthwise_dsp_any;
void tinyml_depthwise_conv_dsp_s8(const struct tinyml_conv_s8 *p, const int8_t *x, int8_t *y,
				  void *scratch, const struct tinyml_depthwise_dsp *way);

/** The same for cores with Helium, with as many output as input channels. Weights are at
 * least -127. They and the other tables of channels come in blocks of sixteen: see ops/_helium.py.
 * Up to 15 bytes are read past the end of the rows. Without scratch memory they are read where they
 * are: for layers with at least 16 channels and no padding.
 */
#define TINYML_DEPTHWISE_MVE_ROWS 32 /* rows of the kernel at most */
void tinyml_depthwise_conv_mve_s8(const struct tinyml_conv_s8 *p, const int8_t *x, int8_t *y,
				  void *scratch);

/** Weights are (kernel_h, kernel_w, out_c). */
void tinyml_depthwise_conv_f32(const struct tinyml_conv_f32 *p, const float *x, float *y);

/** The part of a kernel axis that lies inside the input, for one output position. */
struct tinyml_span {
	int32_t first; /* first kernel index inside */
	int32_t end;   /* one past the last */
	int32_t start; /* input index of kernel index 0 (may be negative) */
};

static inline struct tinyml_span tinyml_span(int32_t out, int32_t stride, int32_t pad,
					     int32_t kernel, int32_t dilation, int32_t in)
{
	const int32_t start = out * stride - pad;
	struct tinyml_span span = {0, kernel, start};

	if (start < 0) {
		span.first = (-start + dilation - 1) / dilation;
	}
	if (start + (kernel - 1) * dilation >= in) {
		span.end = start >= in ? 0 : (in - start + dilation - 1) / dilation;
	}
	if (span.end < span.first) {
		span.end = span.first;
	}
	return span;
}

#ifdef __cplusplus
}
#endif

#endif /* TINYML_CONV_H_ */
