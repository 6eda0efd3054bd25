/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * deep: yes
 * proves: conv/conv_s8.c
 * shapes: 3 x 3 pixels of one to four channels, kernels of 1 x 1 to 3 x 3 with padding,
 *   strides, dilation and groups; sums of one pixel
 * quick: IN=3 IN_C=2 OUT_C=1 KERNEL=2 PAD=1 STRIDE=2 DILATION=1 GROUPS=1 END=1 MEMORY
 * variants: IN=3 IN_C=2 OUT_C=1 KERNEL=2 PAD=1 STRIDE=2 DILATION=1 GROUPS=1 END=1 MEMORY;
 *   IN=3 IN_C=4 OUT_C=3 KERNEL=1 PAD=0 STRIDE=1 DILATION=1 GROUPS=1 END=0 MEMORY;
 *   IN=3 IN_C=3 OUT_C=2 KERNEL=3 PAD=1 STRIDE=1 DILATION=1 GROUPS=1 END=0 MEMORY;
 *   IN=3 IN_C=4 OUT_C=2 KERNEL=2 PAD=0 STRIDE=1 DILATION=2 GROUPS=2 END=0 MEMORY;
 *   IN=1 IN_C=3 OUT_C=1 KERNEL=1 PAD=0 STRIDE=1 DILATION=1 GROUPS=1 END=0
 * unwind: 30
 */

#include "output_contract.h"
#include "conv/conv_s8.c"

#define OUT   ((IN + 2 * PAD - (KERNEL - 1) * DILATION - 1) / STRIDE + 1)
#define EACH  (IN_C / GROUPS)
#define WORDS ((KERNEL * KERNEL * EACH + 3) / 4)
#define PAIRS (GROUPS * ((OUT_C / GROUPS + 1) / 2))

static int32_t filters[PAIRS * (2 * WORDS + 5)];
static uint32_t scratch[(WINDOWS + (EACH % 4 != 0)) * WORDS];
static int8_t x[IN * IN * IN_C], y[OUT * OUT * OUT_C];

int main(void)
{
	const struct tinyml_conv_stream_s8 p = {
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
		.groups = GROUPS,
		.in_zero = (int16_t)between(INT8_MIN, INT8_MAX),
		.weight_zero = (int16_t)between(INT8_MIN, INT8_MAX),
		.out_zero = (int16_t)between(INT8_MIN, INT8_MAX),
		.out_min = INT8_MIN,
		.out_max = INT8_MAX,
		.round_once = nondet_bool(),
		.from_the_end = END,
		.filters = filters,
	};

	__CPROVER_havoc_object(filters);
	__CPROVER_havoc_object(scratch);
	__CPROVER_havoc_object(x);
	for (int i = 0; i < PAIRS; i++) {
		const int32_t *at = &filters[i * (2 * WORDS + 5)];

		for (int j = 0; j < 2; j++) {
			promise(at[j], at[2 + 2 * WORDS + j],
				((const int8_t *)&at[4 + 2 * WORDS])[j]);
		}
	}
	tinyml_conv_s8(&p, x, y, scratch);
	return 0;
}
