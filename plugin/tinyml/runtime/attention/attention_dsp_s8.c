/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Attention on int8 with DSP instructions. */

#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include "attention_dsp_s8.h"

void tinyml_attention_dsp_s8(const struct tinyml_attention_s8 *p,
			     const struct tinyml_attention_bytes *t)
{
	attention_dsp_heads(p, NULL, NULL, t);
}

#endif /* TINYML_CORE_DSP */
