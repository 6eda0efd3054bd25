/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Parts of transposed convolutions with weights of four bits, with DSP instructions. */

#include "conv_apart_s8.h"

#if TINYML_CORE_DSP

void tinyml_conv_apart_nibbles_dsp_s8(const struct tinyml_conv_apart_s8 *p, const int8_t *x,
				      int8_t *y, void *scratch)
{
	conv_apart_s8_rows(p, x, y, scratch, tinyml_conv_nibbles_dsp_s8);
}

#endif /* TINYML_CORE_DSP */
