/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Attention of int8 with a mask that arrives at run time or a bias, and of float with a bias or
 * later keys besides a mask. One kernel of int8 for all of them: without a mask or a bias, it
 * computes what those without it do.
 */

#include <stddef.h>

#include "attention_calls.h"

enum { MASK = 5, BIAS }; /* after the operands of other attention */

void tinyml_play_attention_biased_s8(const struct tinyml_play *play)
{
	typedef void kernel(
		const struct tinyml_attention_s8 *, const struct tinyml_attention_mask *,
		const struct tinyml_attention_s8_bias *, const struct tinyml_attention_bytes *);
	const struct tinyml_play_attention_biased_s8 *r = play->record;
	const struct tinyml_attention_s8 p = tinyml_play_attention_all(play);
	const struct tinyml_attention_bytes t = tinyml_play_attention_bytes(play);
	const struct tinyml_attention_mask mask = {
		.visible = play->operand[MASK],
		.starts = tinyml_play_table(play, r->mask.starts),
		.step = r->mask.step,
		.inverted = r->mask.inverted != 0u,
		.blind = r->mask.blind,
		.blind_keys = r->mask.blind_keys,
	};
	const struct tinyml_attention_s8_bias bias = {
		.values = play->operand[BIAS],
		.starts = tinyml_play_table(play, r->bias.starts),
		.step = r->bias.step,
		.score_factor = r->bias.score_factor,
		.value_factor = r->bias.value_factor,
		.offset = r->bias.offset,
		.shift = r->bias.shift,
	};

	((kernel *)play->kernel->function)(&p, mask.visible != NULL ? &mask : NULL,
					   bias.values != NULL ? &bias : NULL, &t);
}

void tinyml_play_attention_biased_f32(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_attention_f32 *,
			    const struct tinyml_attention_bias *,
			    const struct tinyml_attention_floats *);
	const struct tinyml_play_attention_biased_f32 *r = play->record;
	const struct tinyml_attention_f32 p = tinyml_play_attention_all_f32(play);
	const struct tinyml_attention_floats t = tinyml_play_attention_floats(play);
	const struct tinyml_attention_bias bias = {
		.values = play->operand[BIAS],
		.starts = tinyml_play_table(play, r->bias_starts),
		.step = r->bias_step,
		.later = r->later,
		.later_replaces = r->later_replaces != 0u,
	};

	((kernel *)play->kernel->function)(&p, &bias, &t);
}

/* A query that sees no key may need a row that says with which ones it computes. */
static uint32_t play_attention_biased_blind(const struct tinyml_check *check, uint32_t bytes)
{
	const struct tinyml_play_attention_biased_s8 *r = check->record;

	return r->mask.blind_keys == TINYML_ATTENTION_ONCE ? bytes : 0u;
}

static int64_t play_attention_biased_size(int32_t number)
{
	return number < 0 ? -(int64_t)number : number;
}

/* Scores and values are int8: no sum of them is beyond 32 bits. */
static bool play_attention_biased_sums(const struct tinyml_play_attention_bias *by)
{
	const int64_t factors = play_attention_biased_size(by->score_factor) +
				play_attention_biased_size(by->value_factor);

	return by->shift >= 0 && by->shift < 32 &&
	       128 * factors + play_attention_biased_size(by->offset) <= INT32_MAX;
}

/* `work`: of a call whose rows are checked. A query that sees no key is none that divides by 0. */
static uint32_t play_attention_biased_added(struct tinyml_check *check, uint32_t work)
{
	const struct tinyml_play_attention_biased_s8 *r = check->record;
	const struct tinyml_play_heads *at = &r->all.at;

	if (!check->wrong) {
		tinyml_check_attention_keys(check, at, MASK, r->mask.starts, r->mask.step, 1);
		tinyml_check_attention_keys(check, at, BIAS, r->bias.starts, r->bias.step, 1);
		tinyml_check_that(check, play_attention_biased_sums(&r->bias));
	}
	return work;
}

uint32_t tinyml_check_attention_biased_s8(struct tinyml_check *check)
{
	const struct tinyml_play_attention_s8 *r = check->record;
	const uint32_t row = play_attention_biased_blind(check, (uint32_t)r->at.keys);

	return play_attention_biased_added(check, tinyml_check_attention_rows(check, row));
}

uint32_t tinyml_check_attention_biased_dsp_s8(struct tinyml_check *check)
{
	const struct tinyml_play_attention_s8 *r = check->record;
	const uint32_t keys = ((uint32_t)r->at.keys + 3u) & ~3u;
	const uint32_t rows = play_attention_biased_blind(check, tinyml_check_times(keys, 2));

	return play_attention_biased_added(check, tinyml_check_attention_pairs(check, rows));
}

uint32_t tinyml_check_attention_biased_mve_s8(struct tinyml_check *check)
{
	const struct tinyml_play_attention_s8 *r = check->record;
	const uint32_t row = play_attention_biased_blind(check, (uint32_t)r->at.keys);

	return play_attention_biased_added(check, tinyml_check_attention_vectors(check, row));
}

uint32_t tinyml_check_attention_biased_f32(struct tinyml_check *check)
{
	const struct tinyml_play_attention_biased_f32 *r = check->record;
	const uint32_t work = tinyml_check_attention_f32(check);

	/* each head has a start, unless there is nothing to add */
	tinyml_check_that(check, r->bias_starts != 0u || tinyml_check_nothing(check, BIAS));
	if (!check->wrong) {
		tinyml_check_attention_keys(check, &r->all.at, BIAS, r->bias_starts, r->bias_step,
					    4);
	}
	return work;
}
