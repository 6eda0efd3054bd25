/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Convolutions over NHWC tensors. Every layout of weights has a struct of its own, described with
 * it. In this directory a word is four bytes.
 */

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

/**
 * int8 convolution whose weights are a stream of words, read from front to back.
 *
 * For each group of the convolution, filters come in pairs; a last odd filter is paired with zeros.
 * With N = kernel_h * kernel_w * in_c / groups elements in a filter, padded with zeros to
 * W = ceil(N / 4) words, a pair a, b takes 2 * W + 5 words:
 *
 *   bias of a, bias of b
 *   word 0 of a, word 0 of b, word 1 of a, word 1 of b, ... word W-1 of a, word W-1 of b
 *   factor of a, factor of b
 *   exponent of a, exponent of b, 0, 0 (one byte each)
 *
 * The elements of a filter are ordered (kernel_h, kernel_w, in_c / groups), the first in the lowest
 * byte. The bias includes the contribution of the zero points that does not depend on the input:
 * bias - in_zero * sum(weight - weight_zero). An output is the accumulator times multiplier *
 * 2^(shift - 31), as tinyml_rescale() defines it; factor is 2 * multiplier, exponent is -shift - 1.
 */
struct tinyml_conv_stream_s8 {
	struct tinyml_window window;
	int16_t groups;
	int16_t in_zero;
	int16_t weight_zero;
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	bool round_once;        /* use tinyml_rescale_once() */
	bool from_the_end;      /* compute the last position first */
	const int32_t *filters; /* the stream */
};

/** Plain C. The scratch memory holds three columns of W words each, and a fourth one if
 * in_c / groups is not a multiple of 4.
 */
void tinyml_conv_s8(const struct tinyml_conv_stream_s8 *p, const int8_t *x, int8_t *y,
		    void *scratch);

/** Plain C for processors with 32 registers. The scratch memory holds four columns of W words each,
 * and a fifth one if in_c / groups is not a multiple of 4.
 */
void tinyml_conv_wide_s8(const struct tinyml_conv_stream_s8 *p, const int8_t *x, int8_t *y,
			 void *scratch);

/** For cores with DSP instructions; every shift is negative. The scratch memory holds two columns
 * of int16, 2 * W words each, and one of W words if in_c / groups is not a multiple of 4.
 */
void tinyml_conv_dsp_s8(const struct tinyml_conv_stream_s8 *p, const int8_t *x, int8_t *y,
			void *scratch);

/**
 * For cores with DSP instructions, with another stream: two filters in one int16. Every shift is
 * negative; weight_zero is 0. The scratch memory is that of tinyml_conv_dsp_s8().
 *
 * For each group filters come in fours; the last one or two are a pair, and what is missing to a
 * pair or to four is zero. With W as above, four filters a, b, c, d take 4 * W + 9 words:
 *
 *   bias of a, b, c, d
 *   for every four elements 0 to 3: ab0 ab2, cd0 cd2, ab1 ab3, cd1 cd3 (two int16 in a word)
 *   factor of a, b, c, d
 *   exponent of a, b, c, d (one byte each)
 *
 * where ab is 256 * a + b. A pair takes 2 * W + 5 words: the same without c and d. All ab are
 * within int16, and the accumulators of a and c within 24 bits.
 */
void tinyml_conv_pairs_s8(const struct tinyml_conv_stream_s8 *p, const int8_t *x, int8_t *y,
			  void *scratch);

/**
 * The same for one group, some of whose pairs are not within int16, for a is -128 and b negative:
 * a is then stored as -127, and the weights of each block or pair are followed by a word for each
 * of these elements, which corrects the sum, and by a word of 0. The word is the distance in bytes
 * from the element's int16 of the first window to the end of the columns, plus 1 if a is the third
 * filter of four.
 */
void tinyml_conv_pairs_corrected_s8(const struct tinyml_conv_stream_s8 *p, const int8_t *x,
				    int8_t *y, void *scratch);

/**
 * The same for convolutions in groups; in_c is at least 4 if in_c / groups is neither 1 nor 2.
 * Groups can be joined, with weights of zero for the channels of the others. Filters have T
 * elements for each tap, (kernel_h, kernel_w, T): the in_c / groups weights, and zeros up to 2 or
 * to a multiple of 4. If T is 2, the second and the third of every four elements change places. W
 * is that of these filters. from_the_end is not used. The scratch memory holds two columns of int16
 * for each group, two rows of out_c outputs, each with one byte more and up to whole words, and
 * in_c bytes.
 */
void tinyml_conv_groups_dsp_s8(const struct tinyml_conv_stream_s8 *p, const int8_t *x, int8_t *y,
			       void *scratch);

/**
 * For Arm cores without DSP instructions, with another stream: filters one by one, each of W + 3
 * words (bias; words 0 to W-1; factor; exponent). weight_zero is 0, and the magnitudes of elements
 * 2 * i and 2 * i + 1 of a filter add up to 255 at most. The scratch memory holds four columns of
 * int16, 2 * W words each, four words, and one column of W words if in_c / groups is not a multiple
 * of 4.
 */
void tinyml_conv_halves_s8(const struct tinyml_conv_stream_s8 *p, const int8_t *x, int8_t *y,
			   void *scratch);

/**
 * For weights of four bits: u = w + weight_zero is between 0 and 15. For each group of the
 * convolution, filters come in fours; missing ones make no output. One element of filters a, b, c,
 * d is an int16, h = u_a + 16 * u_b + 256 * u_c + 4096 * (u_d - 8), and 0 after the last element.
 * Four filters take 2 * W + 9 words:
 *
 *   bias of a, b, c, d
 *   h of elements 0 and 2, of elements 1 and 3, of elements 4 and 6, of elements 5 and 7, ...
 *   factor of a, b, c, d
 *   exponent of a, b, c, d (one byte each)
 *
 * Plain C; the scratch memory is that of tinyml_conv_wide_s8().
 */
void tinyml_conv_nibbles_s8(const struct tinyml_conv_stream_s8 *p, const int8_t *x, int8_t *y,
			    void *scratch);

/**
 * The same for cores with DSP instructions. Four filters begin with A = bias of a, B = A + 16 *
 * bias of b, C = B + 256 * bias of c and D = C + 4096 * bias of d, instead of biases. The sums of
 * the second, third and fourth filter of each four are within 28, 24 and 20 bits. The scratch
 * memory is that of tinyml_conv_dsp_s8().
 */
void tinyml_conv_nibbles_dsp_s8(const struct tinyml_conv_stream_s8 *p, const int8_t *x, int8_t *y,
				void *scratch);

/**
 * For Arm cores without DSP instructions and weights between -8 and 7, with the stream and the
 * scratch memory of tinyml_conv_halves_s8(), but eight weights in a word, the first one lowest. If
 * W is odd, the first word of a filter has four weights, in its upper half.
 */
void tinyml_conv_nibbles_halves_s8(const struct tinyml_conv_stream_s8 *p, const int8_t *x,
				   int8_t *y, void *scratch);

/**
 * The same kernels for outputs that are not neighbours: those of a transposed convolution that meet
 * the same taps. Strides are 1. Padding may be negative: windows then begin further inside. The
 * scratch memory is that of the convolution, then `out_w * out_c` bytes at `row` for a row of
 * outputs, which are not used if `step` is out_c.
 */
struct tinyml_conv_apart_s8 {
	struct tinyml_conv_stream_s8 conv;
	int32_t step;  /* bytes from an output position to the next one in a row */
	int32_t line;  /* bytes from a row of outputs to the next */
	int32_t image; /* bytes from a batch item to the next */
	int32_t row;   /* where a row is collected, in bytes from the start of the scratch memory */
};

void tinyml_conv_apart_s8(const struct tinyml_conv_apart_s8 *p, const int8_t *x, int8_t *y,
			  void *scratch);
void tinyml_conv_apart_wide_s8(const struct tinyml_conv_apart_s8 *p, const int8_t *x, int8_t *y,
			       void *scratch);
void tinyml_conv_apart_halves_s8(const struct tinyml_conv_apart_s8 *p, const int8_t *x, int8_t *y,
				 void *scratch);
void tinyml_conv_apart_dsp_s8(const struct tinyml_conv_apart_s8 *p, const int8_t *x, int8_t *y,
			      void *scratch);
void tinyml_conv_apart_pairs_s8(const struct tinyml_conv_apart_s8 *p, const int8_t *x, int8_t *y,
				void *scratch);
void tinyml_conv_apart_nibbles_s8(const struct tinyml_conv_apart_s8 *p, const int8_t *x, int8_t *y,
				  void *scratch);
void tinyml_conv_apart_nibbles_dsp_s8(const struct tinyml_conv_apart_s8 *p, const int8_t *x,
				      int8_t *y, void *scratch);
void tinyml_conv_apart_nibbles_halves_s8(const struct tinyml_conv_apart_s8 *p, const int8_t *x,
					 int8_t *y, void *scratch);

/**
 * int8 convolution for cores with Helium: one group, weights without zero point.
 *
 * Filters come in pairs; a last odd filter is paired with zeros. With N = kernel_h * kernel_w *
 * in_c elements in a filter, V = ceil(N / 16) vectors of 16 bytes, a pair a, b is:
 *
 *   vector 0 of a, vector 0 of b, vector 1 of a, vector 1 of b, ... vector V-1 of a, vector V-1 of
 * b
 *
 * The last vector of a is padded with zeros; the last vector of b is cut off after its N % 16
 * elements, and the next pair follows at once. After the last pair there are enough zeros to read a
 * whole vector. For every four filters, the last one repeated, there are nine words in `channels`:
 * four biases, which include the zero points as in struct tinyml_conv_stream_s8; four multipliers;
 * four shifts, a byte each, the first one lowest: negative, or 0 in the loop for ReLU.
 */
struct tinyml_conv_mve;
struct tinyml_conv_mve_s8 {
	struct tinyml_window window;
	int16_t in_zero;
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	bool round_once;   /* use tinyml_rescale_once() */
	bool from_the_end; /* compute the last position first */
	const int8_t *weights;
	const int32_t *channels;
	const struct tinyml_conv_mve *loop;
};

/** Loops over the filters; only those that a model names are linked. */
extern const struct tinyml_conv_mve tinyml_conv_mve_once;  /* round_once is true */
extern const struct tinyml_conv_mve tinyml_conv_mve_twice; /* it is false */
/* It is false, and out_zero and out_min are -128, out_max is 127. */
extern const struct tinyml_conv_mve tinyml_conv_mve_relu;

/** The scratch memory holds four columns of V vectors. */
void tinyml_conv_mve_s8(const struct tinyml_conv_mve_s8 *p, const int8_t *x, int8_t *y,
			void *scratch);

/** The same for several groups, or with dilation: in_c and out_c of the window are those of one
 * group, whose tables are followed by those of the next. from_the_end is for one group. Groups can
 * be joined, with weights of zero for the channels of the others.
 */
struct tinyml_conv_groups_mve_s8 {
	struct tinyml_conv_mve_s8 conv;
	int32_t groups;
	int32_t weight_bytes;  /* of the weights of a group */
	int32_t channel_words; /* of its channels */
};

void tinyml_conv_groups_mve_s8(const struct tinyml_conv_groups_mve_s8 *p, const int8_t *x,
			       int8_t *y, void *scratch);

/**
 * int8 convolution with few filters: one group, weights without zero point, and no dilation along
 * rows. Windows are multiplied where they are in the input. Weights are (out_c, kernel_h, kernel_w
 * * in_c); the other tables have one entry per output channel, and the bias includes the zero
 * points as in struct tinyml_conv_stream_s8. The scratch memory holds four windows.
 */
struct tinyml_conv_few_s8 {
	struct tinyml_window window;
	int16_t in_zero;
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	bool round_once; /* use tinyml_rescale_once() */
	const int8_t *weights;
	const int32_t *bias;
	const int32_t *multiplier;
	const int8_t *shift;
};

void tinyml_conv_few_s8(const struct tinyml_conv_few_s8 *p, const int8_t *x, int8_t *y,
			void *scratch);

/**
 * The same in groups: the channels of a group are copied with their padding. `each` describes the
 * convolution of such a copy, which has as many rows and columns as all windows span; its tables
 * have all groups. The scratch memory holds the copy besides.
 */
struct tinyml_conv_few_groups_s8 {
	struct tinyml_conv_few_s8 each;
	int16_t groups;
	int16_t batches;
	int16_t in_h, in_w;
	int16_t pad_top, pad_left;
	int16_t rows, columns; /* of the input, that are copied */
};

void tinyml_conv_few_groups_s8(const struct tinyml_conv_few_groups_s8 *p, const int8_t *x,
			       int8_t *y, void *scratch);

/** A loop of the kernels below; `walk` is what it reads and keeps. */
typedef void tinyml_conv_short_loop(void *walk);

/** Positions along an axis: the first, and the end. */
struct tinyml_conv_short_span {
	int16_t begin;
	int16_t end;
};

/**
 * int8 convolution with short filters: one group, weights without zero point, and no dilation along
 * rows. Windows are multiplied where they are in the input.
 *
 * Filters come in fours; of the last ones, two, then one. How S of them are stored is up to the
 * kernel; biases include the zero points as in struct tinyml_conv_stream_s8. How often outputs are
 * rounded is up to the loops.
 */
struct tinyml_conv_short_s8 {
	struct tinyml_window window;
	struct tinyml_conv_short_span rows; /* of outputs whose windows lie inside the input */
	struct tinyml_conv_short_span cols;
	int16_t lowest;     /* the row of outputs whose windows reach the last row of the input */
	int16_t lowest_end; /* of its windows behind which a word is in the input */
	int16_t in_zero;
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	const int32_t *filters;
	tinyml_conv_short_loop *fours; /* those of the numbers of filters that there are */
	tinyml_conv_short_loop *twos;
	tinyml_conv_short_loop *ones;
};

/**
 * With DSP instructions. With W words in a row of a window, filled up with zeros, S filters take
 * S + 2 * S * W * kernel_h + S + 1 words:
 *
 *   biases
 *   for each word of a row, for each filter: its elements 0 and 2, then 1 and 3, as int16
 *   factors and exponents as in struct tinyml_conv_stream_s8 (one byte each, then zeros)
 *
 * The scratch memory holds four windows and three bytes.
 */
void tinyml_conv_short_dsp_s8(const struct tinyml_conv_short_s8 *p, const int8_t *x, int8_t *y,
			      void *scratch);

struct tinyml_conv_short_dsp_walk {
	const int8_t *x; /* the first window */
	int8_t *y;
	int32_t blocks;   /* of one window for fours, two for twos, four for ones */
	int32_t step;     /* from a window to the next, in bytes */
	int32_t out_step; /* from the outputs of a window to those of the next */
	const int32_t *filters;
	int32_t words;      /* of a row of a window */
	int32_t skip;       /* from behind the words of a row to the next row */
	const int32_t *end; /* of the weights */
	int32_t twice_zero; /* see struct tinyml_output */
};

/** One rounding (tinyml_rescale_once()) or two (tinyml_rescale()). */
tinyml_conv_short_loop tinyml_conv_short_dsp_fours_once, tinyml_conv_short_dsp_fours_twice;
tinyml_conv_short_loop tinyml_conv_short_dsp_twos_once, tinyml_conv_short_dsp_twos_twice;
tinyml_conv_short_loop tinyml_conv_short_dsp_ones_once, tinyml_conv_short_dsp_ones_twice;

/**
 * With Helium, for rows of at most 16 elements, which are vectors, filled up with zeros. S filters
 * are 12 words, then kernel_h times a vector of each: biases, multipliers and shifts of four lanes,
 * which are filters a, b, c, d, or a, b, a, b, or a, a, a, a. If there is padding, the scratch
 * memory holds what the windows of a row of outputs span.
 */
void tinyml_conv_short_mve_s8(const struct tinyml_conv_short_s8 *p, const int8_t *x, int8_t *y,
			      void *scratch);

struct tinyml_conv_short_mve_walk {
	const int8_t *x; /* as above */
	int8_t *y;
	int32_t blocks;
	int32_t step;
	int32_t out_step;
	const int32_t *filters;
	int32_t line; /* from a row of a window to the next */
	int32_t more; /* rows after the first one */
	int32_t row;  /* elements of a row */
	int32_t zero;
};

/** For fours of filters with a single row, there are points. */
tinyml_conv_short_loop tinyml_conv_short_mve_points_once, tinyml_conv_short_mve_points_twice;
tinyml_conv_short_loop tinyml_conv_short_mve_fours_once, tinyml_conv_short_mve_fours_twice;
tinyml_conv_short_loop tinyml_conv_short_mve_twos_once, tinyml_conv_short_mve_twos_twice;
tinyml_conv_short_loop tinyml_conv_short_mve_ones_once, tinyml_conv_short_mve_ones_twice;

/**
 * Convolution with few filters, or with groups of few channels, for cores with Helium, on int8 or
 * int16. Elements of a window are loaded from their offsets, from the input itself or from copies
 * of the lines that a row of outputs meets: `copied` bytes of each pixel, those of whole groups,
 * which divide all of them.
 *
 * With V vectors, of 16 weights for int8 and of 8 for int16, each filter is V vectors, filled up
 * with zeros, then a word each: the bias, which includes the zero points as in struct
 * tinyml_conv_stream_s8; the multiplier; the shift, negative or, for outputs that are limited to
 * out_zero = -128 and more, 0.
 */
struct tinyml_conv_few_mve {
	struct tinyml_window window;
	int16_t groups;
	int16_t in_zero;
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	bool round_once; /* use tinyml_rescale_once(); always for int16 */
	int32_t vectors;
	int32_t copied;       /* 0: the input itself, because there is no padding */
	int32_t columns;      /* of a line, with padding */
	int32_t column;       /* bytes from one to the next */
	int32_t row;          /* bytes from a line to the next */
	int32_t line_bytes;   /* of all lines: the scratch memory */
	int32_t filter_bytes; /* V vectors and three words */
	const void *offsets;  /* of the elements of a window: bytes, or elements as int16 */
	const int8_t *filters;
};

void tinyml_conv_few_mve_s8(const struct tinyml_conv_few_mve *p, const int8_t *x, int8_t *y,
			    void *scratch);

/** The same for outputs that are not neighbours: see struct tinyml_conv_apart_s8. */
struct tinyml_conv_apart_mve_s8 {
	struct tinyml_conv_mve_s8 conv;
	int32_t step;
	int32_t line;
	int32_t image;
	int32_t row;
};

void tinyml_conv_apart_mve_s8(const struct tinyml_conv_apart_mve_s8 *p, const int8_t *x, int8_t *y,
			      void *scratch);

/**
 * tinyml_conv_mve_s8() with weights of four bits, from -8 to 7: filters a and b are bytes 16 * b +
 * a, which must be within int8. Those of each pair follow the pair before, and 15 bytes or fewer
 * follow the last one up to a whole vector.
 */
extern const struct tinyml_conv_mve tinyml_conv_mve_nibbles_once;
extern const struct tinyml_conv_mve tinyml_conv_mve_nibbles_twice;
extern const struct tinyml_conv_mve tinyml_conv_mve_nibbles_relu;
void tinyml_conv_nibbles_mve_s8(const struct tinyml_conv_mve_s8 *p, const int8_t *x, int8_t *y,
				void *scratch);

/**
 * int8 convolution for RISC-V with vectors of integers: one group, weights (kernel_h, kernel_w,
 * in_c, out_c) without zero point. The other tables have one entry per output channel; the bias
 * includes the zero points, as in struct tinyml_conv_stream_s8.
 */
struct tinyml_conv_rvv_s8 {
	struct tinyml_window window;
	int16_t in_zero;
	int16_t out_zero;
	int16_t out_min;
	int16_t out_max;
	bool round_once;   /* use tinyml_rescale_once() */
	bool from_the_end; /* compute the last position first */
	const int8_t *weights;
	const int32_t *bias;
	const int32_t *multiplier;
	const int8_t *shift; /* not positive; negative with round_once */
};

/** The scratch memory holds four columns of kernel_h * kernel_w * in_c bytes. */
void tinyml_conv_rvv_s8(const struct tinyml_conv_rvv_s8 *p, const int8_t *x, int8_t *y,
			void *scratch);

/**
 * The same with weights of four bits, from -8 to 7, two elements in a byte, the first in its lower
 * half. If the number of elements is odd, the last has bytes of its own.
 */
void tinyml_conv_nibbles_rvv_s8(const struct tinyml_conv_rvv_s8 *p, const int8_t *x, int8_t *y,
				void *scratch);

struct tinyml_conv_f32 {
	struct tinyml_window window;
	int16_t groups;
	bool from_the_end; /* compute the last position first */
	float out_min;
	float out_max;
	const float *weights; /* for each group by eight filters (kernel_h, kernel_w, in_c / groups,
				 8), then by four, then the rest one by one */
	const float *bias;    /* one per output channel, or NULL */
};

void tinyml_conv_f32(const struct tinyml_conv_f32 *p, const float *x, float *y);

/** The same for one image, with outputs that are not neighbours: those of a transposed convolution
 * that meet the same taps. Padding may be negative: windows then begin further inside.
 */
struct tinyml_conv_apart_f32 {
	struct tinyml_conv_f32 conv;
	int32_t step; /* elements from an output position to the next one in a row */
	int32_t line; /* elements from a row of outputs to the next */
};

void tinyml_conv_apart_f32(const struct tinyml_conv_apart_f32 *p, const float *x, float *y);

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
