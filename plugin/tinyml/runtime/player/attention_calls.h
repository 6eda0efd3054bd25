/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** What calls of attention with a mask or a bias share with those without. */

#ifndef TINYML_ATTENTION_CALLS_H_
#define TINYML_ATTENTION_CALLS_H_

#include <tinyml/attention.h>

#include "nest.h"

struct tinyml_attention_s8 tinyml_play_attention_all(const struct tinyml_play *play);
struct tinyml_attention_bytes tinyml_play_attention_bytes(const struct tinyml_play *play);
struct tinyml_attention_f32 tinyml_play_attention_all_f32(const struct tinyml_play *play);
struct tinyml_attention_floats tinyml_play_attention_floats(const struct tinyml_play *play);

/** Each kernel of int8, with so many bytes more of working memory; returns the work. */
uint32_t tinyml_check_attention_rows(struct tinyml_check *check, uint32_t more);
uint32_t tinyml_check_attention_pairs(struct tinyml_check *check, uint32_t more);
uint32_t tinyml_check_attention_vectors(struct tinyml_check *check, uint32_t more);

/** Reads of an element for each key: a row for each query, from a start for each head; `starts`:
 * the table of them, or 0. The operand may be nothing. */
void tinyml_check_attention_keys(struct tinyml_check *check, const struct tinyml_play_heads *at,
				 uint32_t operand, uint32_t starts, int32_t step, uint32_t size);

#endif /* TINYML_ATTENTION_CALLS_H_ */
