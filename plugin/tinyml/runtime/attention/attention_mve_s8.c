/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Attention on int8 with Helium. */

#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include "attention_mve_s8.h"

void tinyml_attention_mve_s8(const struct tinyml_attention_s8 *p,
			     const struct tinyml_attention_bytes *t)
{
	attention_mve_heads(p, NULL, NULL, t);
}

#endif /* TINYML_CORE_MVE */
