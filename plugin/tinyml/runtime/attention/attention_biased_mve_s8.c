/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Attention on int8 with Helium, with a bias and perhaps a mask. */

#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "attention_mve_s8.h"

void tinyml_attention_biased_mve_s8(const struct tinyml_attention_s8 *p,
				    const struct tinyml_attention_mask *mask,
				    const struct tinyml_attention_s8_bias *bias,
				    const struct tinyml_attention_bytes *t)
{
	attention_mve_heads(p, mask, bias, t);
}

#endif /* TINYML_CORE_MVE */
