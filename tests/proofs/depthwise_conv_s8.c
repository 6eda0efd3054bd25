/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * deep: yes
 * proves: conv/depthwise_conv_s8.c, conv/plane_s8.h
 * shapes: 4 x 4 pixels of one or two channels, kernels of 2 x 2 and 3 x 3 in all loops,
 *   padding, strides, dilation, both layouts; sums of one pixel
 * quick: IN=4 IN_C=2 OUT_C=2 KERNEL=3 PAD=1 STRIDE=1 DILATION=1 PLANE=3x3 MEMORY
 * variants: IN=4 IN_C=2 OUT_C=2 KERNEL=3 PAD=1 STRIDE=1 DILATION=1 PLANE=3x3 MEMORY;
 *   IN=4 IN_C=1 OUT_C=2 KERNEL=3 PAD=1 STRIDE=2 DILATION=1 PLANE=3x3_strided MEMORY;
 *   IN=4 IN_C=2 OUT_C=4 KERNEL=2 PAD=1 STRIDE=2 DILATION=2 PLANE=any MEMORY;
 *   IN=2 IN_C=1 OUT_C=1 KERNEL=2 PAD=0 STRIDE=1 DILATION=1 PLANE=any
 * unwind: 20
 */

#include "output_contract.h"
#include "conv/depthwise_conv_s8.c"

#define OUT           ((IN + 2 * PAD - (KERNEL - 1) * DILATION - 1) / STRIDE + 1)
#define SIDE          ((KERNEL - 1) * DILATION + (OUT - 1) * STRIDE + 1)
#define NAMED(loop)   tinyml_depthwise_##loop
#define LOOP_OF(loop) NAMED(loop)

static int8_t weights[OUT_C * KERNEL * KERNEL], shift[OUT_C], plane[SIDE * SIDE];
static int32_t bias[OUT_C], multiplier[OUT_C];
static int8_t x[IN * IN * IN_C], y[OUT * OUT * OUT_C];

int main(void)
{
	const struct tinyml_depthwise_conv_s8 p = {
		.window =
			{
				.batches = 1,
				.in_h = IN,
				.in_w = IN,
				.in_c = IN_C,
				.out_h = OUT,
				.out_w = OUT,
				.out_c = OUT_C,
				.kernel_h = KERNEL,
				.kernel_w = KERNEL,
				.stride_h = STRIDE,
				.stride_w = STRIDE,
				.dilation_h = DILATION,
				.dilation_w = DILATION,
				.pad_top = PAD,
				.pad_left = PAD,
			},
		.in_zero = (int16_t)between(INT8_MIN, INT8_MAX),
		.weight_zero = (int16_t)between(INT8_MIN, INT8_MAX),
		.out_zero = (int16_t)between(INT8_MIN, INT8_MAX),
		.out_min = INT8_MIN,
		.out_max = INT8_MAX,
		.round_once = nondet_bool(),
		.transposed = nondet_bool(),
		.weights = weights,
		.bias = bias,
		.multiplier = multiplier,
		.shift = shift,
	};

	__CPROVER_havoc_object(weights);
	__CPROVER_havoc_object(plane);
	__CPROVER_havoc_object(x);
	for (int i = 0; i < OUT_C; i++) {
		bias[i] = between(-(1 << 30), 1 << 30);
		multiplier[i] = between(1 << 30, INT32_MAX);
		shift[i] = (int8_t)between(-31, -1);
	}
	tinyml_depthwise_conv_s8(&p, x, y, plane, &LOOP_OF(PLANE));
	return 0;
}
