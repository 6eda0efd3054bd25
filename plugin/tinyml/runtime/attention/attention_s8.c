/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Attention on int8, query by query. */

#include <tinyml/attention.h>

#include "attention_rows_s8.h"

void tinyml_attention_s8(const struct tinyml_attention_s8 *p,
			 const struct tinyml_attention_bytes *t)
{
	attention_rows_s8_heads(p, NULL, NULL, t);
}
