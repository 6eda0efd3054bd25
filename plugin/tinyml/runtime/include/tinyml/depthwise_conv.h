/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Depthwise convolutions over NHWC tensors: every output channel reads a single input channel. */

#ifndef TINYML_DEPTHWISE_CONV_H_
#define TINYML_DEPTHWISE_CONV_H_

#include <stdbool.h>
#include <stdint.h>

#include <tinyml/conv.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * int8 depthwise convolution, computed channel by channel; out_c is a multiple of in_c.
 *
 * Weights are (out_c, kernel_h, kernel_w). Kernels for cores with DSP instructions read whole
 * words, up to three bytes past the last weight; what they find there does not matter. The other
 * tables have one entry per output channel. The bias includes the contribution of the zero points
 * that does not depend on the input: bias - in_zero * sum(weight - weight_zero).
 */
struct tinyml_depthwise_conv_s8 {
	struct tinyml_window window;
	int16_t in_zero;
	int16_t weight_zero;
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	bool round_once; /* use tinyml_rescale_once() */
	bool transposed; /* rows of the window are columns of the tensors */
	const int8_t *weights;
	const int32_t *bias;
	const int32_t *multiplier;
	const int8_t *shift;
};

/**
 * Plain C. The scratch memory holds one channel with its padding, as far as windows reach: the
 * plane. `loop` is the loop over that plane; only the loops that a model names are linked.
 */
struct tinyml_depthwise;
extern const struct tinyml_depthwise tinyml_depthwise_3x3; /* 3x3 kernel without dilation or weight
							      zero point; stride_w is 1 */
extern const struct tinyml_depthwise tinyml_depthwise_3x3_strided; /* the same, any stride_w */
extern const struct tinyml_depthwise tinyml_depthwise_any;
void tinyml_depthwise_conv_s8(const struct tinyml_depthwise_conv_s8 *p, const int8_t *x, int8_t *y,
			      void *scratch, const struct tinyml_depthwise *loop);

/**
 * The same with weights of four bits, from -8 to 7, and at most 64 elements in a kernel: those of
 * each channel as weighted/nibbles_s8.h describes them.
 */
void tinyml_depthwise_nibbles_s8(const struct tinyml_depthwise_conv_s8 *p, const int8_t *x,
				 int8_t *y, void *scratch, const struct tinyml_depthwise *loop);

/**
 * For cores with DSP instructions; every shift is negative. These kernels read the plane in words,
 * up to three bytes past its end. For all but 3x3 kernels, the weights of a channel as int16 follow
 * the plane at the next word boundary.
 */
struct tinyml_depthwise_dsp;
extern const struct tinyml_depthwise_dsp tinyml_depthwise_dsp_3x3;
extern const struct tinyml_depthwise_dsp tinyml_depthwise_dsp_3x3_strided;
extern const struct tinyml_depthwise_dsp
	tinyml_depthwise_dsp_3x3_by_1_once; /* as 3x3, faster, also
for a single row of up to nine taps, read up to six bytes past the plane: stride_w is 1 (2 in by_2),
out_w at least 2, out_min -128, out_max 127, and round_once is true (false in twice) */
extern const struct tinyml_depthwise_dsp tinyml_depthwise_dsp_3x3_by_1_twice;
extern const struct tinyml_depthwise_dsp tinyml_depthwise_dsp_3x3_by_2_once;
extern const struct tinyml_depthwise_dsp tinyml_depthwise_dsp_3x3_by_2_twice;
extern const struct tinyml_depthwise_dsp tinyml_depthwise_dsp_two_words; /* rows span 5 to 7
									    elements */
extern const struct tinyml_depthwise_dsp tinyml_depthwise_dsp_two_words_strided;
extern const struct tinyml_depthwise_dsp tinyml_depthwise_dsp_any;
void tinyml_depthwise_conv_dsp_s8(const struct tinyml_depthwise_conv_s8 *p, const int8_t *x,
				  int8_t *y, void *scratch,
				  const struct tinyml_depthwise_dsp *loop);

/** The same with weights of four bits, and any shift. */
void tinyml_depthwise_nibbles_dsp_s8(const struct tinyml_depthwise_conv_s8 *p, const int8_t *x,
				     int8_t *y, void *scratch,
				     const struct tinyml_depthwise_dsp *loop);

/** The same if every shift is negative: it links less code. */
void tinyml_depthwise_nibbles_right_dsp_s8(const struct tinyml_depthwise_conv_s8 *p,
					   const int8_t *x, int8_t *y, void *scratch,
					   const struct tinyml_depthwise_dsp *loop);

/**
 * For Arm cores without DSP instructions: no dilation or weight zero point, every shift is
 * negative, out_min is -128, out_max 127, and sums stay below 2^29. Taps are added in pairs, of
 * which at least one is not -128: of nine taps of a 3x3 kernel 0 and 1, 3 and 4, 6 and 7, 2 and 5;
 * of others every two neighbours in a row (in the only column, if windows are one element wide and
 * in one column).
 *
 * The scratch memory, at a word boundary, has a word for every element that windows of the upper
 * half of the output reach, with padding: ((out_h + 1) / 2 - 1) * stride_h + kernel_h rows of
 * (out_w - 1) * stride_w + kernel_w words. For kernels other than 3x3, a word for every tap
 * follows, with an even number of taps in a row.
 */
struct tinyml_depthwise_halves;
extern const struct tinyml_depthwise_halves
	tinyml_depthwise_halves_3x3_once; /* round_once is true, false in twice */
extern const struct tinyml_depthwise_halves tinyml_depthwise_halves_3x3_twice;
extern const struct tinyml_depthwise_halves tinyml_depthwise_halves_any_once;
extern const struct tinyml_depthwise_halves tinyml_depthwise_halves_any_twice;
void tinyml_depthwise_halves_s8(const struct tinyml_depthwise_conv_s8 *p, const int8_t *x,
				int8_t *y, void *scratch,
				const struct tinyml_depthwise_halves *loop);

/**
 * The same with weights of four bits. Channels whose shift is not negative take the loop `large`,
 * one of those for round_once: of these, weights, bias and sums times 2^(shift + 1) have the limits
 * above.
 */
void tinyml_depthwise_nibbles_halves_s8(const struct tinyml_depthwise_conv_s8 *p, const int8_t *x,
					int8_t *y, void *scratch,
					const struct tinyml_depthwise_halves *loop,
					const struct tinyml_depthwise_halves *large);

/**
 * For windows that cover the whole input: one output per channel. out_c is in_c, and there is no
 * padding, dilation or weight zero point. Weights are (kernel_h, kernel_w, out_c).
 */
void tinyml_depthwise_whole_s8(const struct tinyml_depthwise_conv_s8 *p, const int8_t *x,
			       int8_t *y);

/**
 * int8 depthwise convolution for cores with Helium: out_c is in_c, at most one weight of each
 * channel is -128, weights have no zero point.
 *
 * Channels come in blocks of sixteen. The last block ends with the last channel, so it may repeat
 * channels of the block before; with fewer than sixteen channels, the last one is repeated, but
 * eight channels come twice. Weights are (block, kernel_h, kernel_w, 16). The other tables are
 * (block, 16), and within a block the channels are ordered 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14,
 * 3, 7, 11, 15: the order in which widening multiplications leave the lanes. The bias includes the
 * zero points, as above.
 */
struct tinyml_depthwise_mve;
struct tinyml_depthwise_conv_mve_s8 {
	struct tinyml_window window;
	int16_t in_zero;
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	bool round_once; /* use tinyml_rescale_once() */
	const int8_t *weights;
	const int32_t *bias;
	const int32_t *multiplier;
	const int8_t *shift; /* not positive; negative with round_once */
	const struct tinyml_depthwise_mve *loop;
};

/** Loops over a row; only those that a model names are linked. */
extern const struct tinyml_depthwise_mve tinyml_depthwise_mve_3x3_once;  /* round_once is true */
extern const struct tinyml_depthwise_mve tinyml_depthwise_mve_3x3_twice; /* it is false */
extern const struct tinyml_depthwise_mve
	tinyml_depthwise_mve_3x3_relu; /* also, out_zero and out_min are -128, out_max is 127 */
extern const struct tinyml_depthwise_mve tinyml_depthwise_mve_any_once; /* any kernel */
extern const struct tinyml_depthwise_mve tinyml_depthwise_mve_any_twice;

/**
 * The scratch memory holds the rows that the kernel spans, with their padding, and 15 more bytes,
 * because whole vectors are read. If scratch is NULL, rows are read from x itself: that requires at
 * least 16 channels and no padding.
 */
#define TINYML_DEPTHWISE_MVE_TAPS 64 /* kernel_h * kernel_w is at most this */
void tinyml_depthwise_conv_mve_s8(const struct tinyml_depthwise_conv_mve_s8 *p, const int8_t *x,
				  int8_t *y, void *scratch);

/**
 * The same with weights of four bits, from -8 to 7. A block begins with a vector of what its
 * weights are shifted by to the left; of every two vectors, the first one is in the lower halves of
 * the bytes and the second one in the upper halves. The scratch memory begins with the weights as
 * bytes and one more vector; what is above follows unless rows are read from x itself, in which
 * case @a copied is false.
 */
void tinyml_depthwise_nibbles_mve_s8(const struct tinyml_depthwise_conv_mve_s8 *p, const int8_t *x,
				     int8_t *y, void *scratch, bool copied);

/**
 * The same with one of the loops for 3x3 kernels. Weights are unpacked for every row, on the stack:
 * the scratch memory has rows only, and is not NULL.
 */
void tinyml_depthwise_nibbles_rows_mve_s8(const struct tinyml_depthwise_conv_mve_s8 *p,
					  const int8_t *x, int8_t *y, void *scratch);

/**
 * For RISC-V with vectors of integers: out_c is in_c, weights are (kernel_h, kernel_w, out_c), and
 * from_the_end is not used. The scratch memory holds the rows that the kernel spans, with their
 * padding. If scratch is NULL, rows are read from x itself: that requires no padding.
 */
void tinyml_depthwise_conv_rvv_s8(const struct tinyml_conv_rvv_s8 *p, const int8_t *x, int8_t *y,
				  void *scratch);

/**
 * The same with weights of four bits, from -8 to 7: eight in four bytes, of which the lower halves
 * come first; the last ones two in a byte. The scratch memory begins with the weights as bytes and
 * up to four more, to a multiple of four; the rows follow unless @a copied is false.
 */
void tinyml_depthwise_nibbles_rvv_s8(const struct tinyml_conv_rvv_s8 *p, const int8_t *x, int8_t *y,
				     void *scratch, bool copied);

struct tinyml_depthwise_conv_f32 {
	struct tinyml_window window;
	float out_min;
	float out_max;
	const float *weights; /* (kernel_h, kernel_w, out_c) */
	const float *bias;    /* one per output channel, or NULL */
};

void tinyml_depthwise_conv_f32(const struct tinyml_depthwise_conv_f32 *p, const float *x, float *y);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_DEPTHWISE_CONV_H_ */
