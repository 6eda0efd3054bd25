/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Parts of transposed convolutions, in plain C for processors with 32 registers. */

#include "conv_apart_s8.h"

void tinyml_conv_apart_wide_s8(const struct tinyml_conv_apart_s8 *p, const int8_t *x, int8_t *y,
			       void *scratch)
{
	conv_apart_s8_rows(p, x, y, scratch, tinyml_conv_wide_s8);
}
