/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Layers with int16 activations and int8 weights. All zero points are 0. */

#ifndef TINYML_CONV_S16_H_
#define TINYML_CONV_S16_H_

#include <stdbool.h>
#include <stdint.h>

#include <tinyml/conv.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tinyml_conv_s16 {
	struct tinyml_window window;
	int16_t groups; /* 0: each channel is one, and outputs may be written over inputs */
	int16_t out_min;
	int16_t out_max;
	bool round_once;           /* see tinyml_narrow_s64_once() */
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
	bool round_once; /* see tinyml_narrow_s64_once() */
};

/** The scratch memory holds the input of one filter: kernel_h * kernel_w * in_c / groups int16; if
 * groups is 0, kernel_h * kernel_w, then in_h * in_w for a channel.
 */
void tinyml_conv_s16(const struct tinyml_conv_s16 *p, const int16_t *x, int16_t *y, void *scratch);
void tinyml_dense_s16(const struct tinyml_dense_s16 *p, const int16_t *x, int16_t *y);

/**
 * For cores with DSP instructions: sums, with the bias, are within 32 bits. An output is
 * floor(sum * factor / 2^(32 + shift) + 1/2), within the limits. The tables have one entry per
 * output channel.
 *
 * For each group of the convolution, filters come in pairs; a last odd filter is paired with zeros.
 * Elements (kernel_h, kernel_w, in_c / groups) are filled up with zeros to a multiple of 4. Every
 * two elements of filters a and b are a word of bytes: a0 + 128, b0, a1 + 128, b1. With whole_rows,
 * a zero follows each row of taps: these are adjacent, and their elements of odd number.
 */
struct tinyml_conv_dsp_s16 {
	struct tinyml_window window;
	int16_t groups;
	int16_t out_min;
	int16_t out_max;
	bool whole_rows; /* not with Helium: see above */
	const int8_t *weights;
	const int32_t *bias;
	const int32_t *factor;
	const uint8_t *shift; /* 1 to 31 */
};

/** The scratch memory holds three words and four windows of int16, of so many elements each. If
 * shift is NULL, an output is floor(sum * factor / 2^32 + 1/2).
 */
void tinyml_conv_dsp_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y,
			 void *scratch);

/** For a convolution with one filter: weights are int16, in their order. */
void tinyml_conv_single_dsp_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y);

/** The same for cores with Helium. Elements of a filter are filled up to a multiple of 8. Every
 * eight elements of a are followed by those of b. The scratch memory holds four windows. If shift
 * is NULL, an output is floor(sum * factor / 2^31 + 1/2).
 */
void tinyml_conv_mve_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y,
			 void *scratch);

/** For few filters, or groups of few channels: see there. Zero points are 0. */
void tinyml_conv_few_mve_s16(const struct tinyml_conv_few_mve *p, const int16_t *x, int16_t *y,
			     void *scratch);

/** Elements from an output position to the next one in a row, from a row of outputs to the next,
 * and from a batch item to the next.
 */
struct tinyml_steps_s16 {
	int32_t step;
	int32_t line;
	int32_t image;
};

/** The same for outputs that are so far apart. */
void tinyml_conv_steps_dsp_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y,
			       const struct tinyml_steps_s16 *steps, void *scratch);
void tinyml_conv_steps_mve_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y,
			       int32_t step, void *scratch);

/**
 * The same kernels for outputs that are not neighbours: those of a transposed convolution that meet
 * the same taps. Strides are 1. Padding may be negative: windows then begin further inside. The
 * scratch memory is that of the convolution, then `out_w * out_c` elements at `row` for a row of
 * outputs, which are not used if `step` is out_c.
 */
struct tinyml_conv_apart_s16 {
	struct tinyml_conv_s16 conv;
	int32_t step;  /* elements from an output position to the next one in a row */
	int32_t line;  /* elements from a row of outputs to the next */
	int32_t image; /* elements from a batch item to the next */
	int32_t row;   /* where a row is collected, in elements from the start of the scratch memory
			*/
};

struct tinyml_conv_apart_dsp_s16 {
	struct tinyml_conv_dsp_s16 conv;
	int32_t step; /* as above */
	int32_t line;
	int32_t image;
	int32_t row; /* not used: outputs are written where they belong */
};

void tinyml_conv_apart_s16(const struct tinyml_conv_apart_s16 *p, const int16_t *x, int16_t *y,
			   void *scratch);
void tinyml_conv_apart_dsp_s16(const struct tinyml_conv_apart_dsp_s16 *p, const int16_t *x,
			       int16_t *y, void *scratch);
void tinyml_conv_apart_single_dsp_s16(const struct tinyml_conv_apart_dsp_s16 *p, const int16_t *x,
				      int16_t *y, void *scratch);
void tinyml_conv_apart_mve_s16(const struct tinyml_conv_apart_dsp_s16 *p, const int16_t *x,
			       int16_t *y, void *scratch);

/** The same for depthwise convolutions with as many outputs as inputs; groups is not used. Weights
 * are (kernel_h, kernel_w, channels), filled up with zeros to a multiple of 4 channels.
 */
void tinyml_depthwise_dsp_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y);
void tinyml_depthwise_mve_s16(const struct tinyml_conv_dsp_s16 *p, const int16_t *x, int16_t *y);

/**
 * The same for lines of outputs: channel by channel, each copied first, so that outputs may be
 * written over inputs. Weights are (channels, kernel_h, kernel_w). The scratch memory holds two
 * words for each row of the kernel, the channel with its padding as far as windows reach (two
 * channels, if their number is even and not below TINYML_PLANES_S16_CHANNELS), and five elements.
 */
#define TINYML_PLANES_S16_CHANNELS 16

struct tinyml_depthwise_planes_dsp_s16 {
	struct tinyml_window window; /* kernel_w is at most 3, stride_w and dilation_w are 1 */
	int16_t out_min;
	int16_t out_max;
	bool transposed; /* the window has rows and columns exchanged */
	const int8_t *weights;
	const int32_t *bias;
	const int32_t *factor;
	const uint8_t *shift;
};

void tinyml_depthwise_planes_dsp_s16(const struct tinyml_depthwise_planes_dsp_s16 *p,
				     const int16_t *x, int16_t *y, void *scratch);

/**
 * The same for cores with Helium, eight channels at a time. All tables are filled up with zeros to
 * a multiple of 8 channels. For every eight channels, weights are (kernel_h, 3, 8), with zeros for
 * missing taps of a row; of biases, factors and shifts those of the even channels are first. An
 * output is floor(sum * factor / 2^31 + 1/2), or, with shifts, floor(sum * factor / 2^(31 - shift)
 * + 1/2). The scratch memory holds rows of eight channels and out_w + 2 positions, or out_w + 3 if
 * out_w is odd: (kernel_h - 1) * dilation_h + 2 of them.
 */
struct tinyml_depthwise_strips_mve_s16 {
	struct tinyml_window window; /* kernel_w and kernel_h are at most 3, stride_w and dilation_w
					1 */
	int16_t out_min;
	int16_t out_max;
	bool transposed; /* the window has rows and columns exchanged */
	const int8_t *weights;
	const int32_t *bias;
	const int32_t *factor;
	const int8_t *shift; /* -32 to -2, or NULL: all are 0 */
};

void tinyml_depthwise_strips_mve_s16(const struct tinyml_depthwise_strips_mve_s16 *p,
				     const int16_t *x, int16_t *y, void *scratch);

/** The same for dense layers. Filters come in fours, a to d; missing ones are zero. Every two
 * elements, a missing one of zero, are two words of bytes: a0, b0, a1, b1, c0, d0, c1, d1.
 */
struct tinyml_dense_dsp_s16 {
	int32_t rows;
	int32_t inputs;
	int32_t outputs;
	const int8_t *weights;
	const int32_t *bias;
	const int32_t *factor;
	const uint8_t *shift;
	int16_t out_min;
	int16_t out_max;
};

void tinyml_dense_dsp_s16(const struct tinyml_dense_dsp_s16 *p, const int16_t *x, int16_t *y);

/** The same for cores with Helium. Elements are filled up to a multiple of 8. Every eight elements
 * of a are followed by those of b, c and d.
 */
void tinyml_dense_mve_s16(const struct tinyml_dense_dsp_s16 *p, const int16_t *x, int16_t *y);

/** sum plus the products of x and w. */
static inline int64_t tinyml_add_products_s16(int64_t sum, const int16_t *x, const int8_t *w,
					      int32_t length)
{
	while (length > 0) {
		/* a product has 23 bits: 256 of them fit in 32 bits, which are faster to add */
		const int32_t count = length < 256 ? length : 256;
		int32_t part = 0;
		int32_t i = 0;

		for (; i < count - 3; i += 4) {
			part += x[i] * w[i];
			part += x[i + 1] * w[i + 1];
			part += x[i + 2] * w[i + 2];
			part += x[i + 3] * w[i + 3];
		}
		for (; i < count; i++) {
			part += x[i] * w[i];
		}
		sum += part;
		x += count;
		w += count;
		length -= count;
	}
	return sum;
}

static inline int16_t tinyml_limit_s64(int64_t x, int32_t low, int32_t high)
{
	return (int16_t)(x < low ? low : x > high ? high : x);
}

/** x * multiplier * 2^(shift - 31), limited to low and high, with 16 bits of the multiplier, as
 * TensorFlow Lite computes it.
 */
static inline int16_t tinyml_narrow_s64(int64_t x, int32_t multiplier, int32_t shift, int32_t low,
					int32_t high)
{
	const int64_t factor =
		multiplier < 0x7FFF0000 ? (multiplier + (INT32_C(1) << 15)) >> 16 : 0x7FFF;
	const int32_t exponent = 15 - shift;

	return tinyml_limit_s64((x * factor + (INT64_C(1) << (exponent - 1))) >> exponent, low,
				high);
}

/** The same with all bits of the multiplier, rounding halves up, for models that are defined by
 * real arithmetic. x has at most 48 bits; the lowest 16 bits of the product are dropped, so that it
 * fits.
 */
static inline int16_t tinyml_narrow_s64_once(int64_t x, int32_t multiplier, int32_t shift,
					     int32_t low, int32_t high)
{
	const int64_t product = (x >> 16) * multiplier + (((x & 0xFFFF) * multiplier) >> 16);
	const int32_t exponent = 15 - shift;

	return tinyml_limit_s64((product + (INT64_C(1) << (exponent - 1))) >> exponent, low, high);
}

#ifdef __cplusplus
}
#endif

#endif /* TINYML_CONV_S16_H_ */
