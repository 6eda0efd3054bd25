/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise convolutions with weights of four bits for RISC-V's vectors. All weights are unpacked
 * first: each is used at every position, and rows are computed in the order of the input. */

#include <tinyml/depthwise_conv.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_RVV

#include "../weighted/nibbles_s8.h"

void tinyml_depthwise_nibbles_rvv_s8(const struct tinyml_conv_rvv_s8 *p, const int8_t *x, int8_t *y,
				     void *scratch, bool copied)
{
	const struct tinyml_window *w = &p->window;
	const int32_t count = w->kernel_h * w->kernel_w * w->out_c;
	struct tinyml_conv_rvv_s8 unpacked = *p;
	int8_t *const to = scratch;

	tinyml_unpack_nibbles(to, p->weights, count);
	unpacked.weights = to;
	tinyml_depthwise_conv_rvv_s8(&unpacked, x, y, copied ? &to[(count + 4) & ~3] : NULL);
}

#endif /* TINYML_CORE_RVV */
