/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Parts of transposed convolutions, with DSP instructions and two filters in one int16. */

#include "conv_apart_s8.h"

#if TINYML_CORE_DSP

void tinyml_conv_apart_pairs_s8(const struct tinyml_conv_apart_s8 *p, const int8_t *x, int8_t *y,
				void *scratch)
{
	conv_apart_s8_rows(p, x, y, scratch, tinyml_conv_pairs_s8);
}

#endif /* TINYML_CORE_DSP */
