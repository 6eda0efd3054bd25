/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions with few filters in plain C. */

#include <stdint.h>

#include "conv_few_dot_s8.h"
#include "conv_few_s8.h"

void tinyml_conv_few_s8(const struct tinyml_conv_few_s8 *p, const int8_t *x, int8_t *y,
			void *scratch)
{
	conv_few_convolve(p, x, y, p->window.out_c, scratch);
}
