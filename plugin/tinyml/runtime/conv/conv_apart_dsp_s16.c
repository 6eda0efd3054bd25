/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Parts of transposed convolutions with int16 activations, with DSP instructions. */

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

#include "conv_apart_steps_s16.h"

#if TINYML_CORE_DSP

void tinyml_conv_apart_dsp_s16(const struct tinyml_conv_apart_dsp_s16 *p, const int16_t *x,
			       int16_t *y, void *scratch)
{
	conv_apart_steps_s16(p, x, y, scratch, tinyml_conv_steps_dsp_s16);
}

#endif /* TINYML_CORE_DSP */
