/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Attention on floats, with a bias besides a mask. */

#include <tinyml/attention.h>

#include "attention_f32.h"

void tinyml_attention_biased_f32(const struct tinyml_attention_f32 *p,
				 const struct tinyml_attention_bias *bias,
				 const struct tinyml_attention_floats *t)
{
	attention_f32_heads(p, bias, t);
}
