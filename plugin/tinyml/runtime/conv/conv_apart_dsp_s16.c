/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Parts of transposed convolutions with int16 activations, with DSP instructions. */

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

void tinyml_conv_apart_dsp_s16(const struct tinyml_conv_apart_dsp_s16 *p, const int16_t *x,
			       int16_t *y, void *scratch)
{
	const struct tinyml_steps_s16 steps = {p->step, p->line, p->image};

	TINYML_ASSERT(p->conv.window.stride_h == 1 && p->conv.window.stride_w == 1);
	tinyml_conv_steps_dsp_s16(&p->conv, x, y, &steps, scratch);
}

#endif /* TINYML_CORE_DSP */
