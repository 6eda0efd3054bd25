/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Parts of transposed convolutions with int16 activations, with Helium. */

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

#define CONV_APART struct tinyml_conv_apart_dsp_s16
#define CONV_ROW   struct tinyml_conv_dsp_s16

#include "conv_apart_s16.h"

#if TINYML_CORE_MVE

void tinyml_conv_apart_mve_s16(const struct tinyml_conv_apart_dsp_s16 *p, const int16_t *x,
			       int16_t *y, void *scratch)
{
	conv_apart_s16_rows(p, x, y, scratch, tinyml_conv_mve_s16);
}

#endif /* TINYML_CORE_MVE */
