/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Parts of transposed convolutions with weights of four bits, for Arm cores without DSP
 * instructions. */

#include "conv_apart_s8.h"

#if defined(__thumb__) && !TINYML_CORE_DSP

void tinyml_conv_apart_nibbles_halves_s8(const struct tinyml_conv_apart_s8 *p, const int8_t *x,
					 int8_t *y, void *scratch)
{
	conv_apart_s8_rows(p, x, y, scratch, tinyml_conv_nibbles_halves_s8);
}

#endif /* defined(__thumb__) && !TINYML_CORE_DSP */
