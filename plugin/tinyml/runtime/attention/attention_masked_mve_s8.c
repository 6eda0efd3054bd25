/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Attention on int8 with Helium, with a mask. */

#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "attention_mve_s8.h"

void tinyml_attention_masked_mve_s8(const struct tinyml_attention_s8 *p,
				    const struct tinyml_attention_mask *mask,
				    const struct tinyml_attention_bytes *t)
{
	attention_mve_heads(p, mask, NULL, t);
}

#endif /* TINYML_CORE_MVE */
