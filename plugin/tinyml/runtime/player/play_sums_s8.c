/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Means of whole columns, which arrive a few rows at a time; sums along any axes. */

#include <tinyml/fixed_point.h>

#include "nest.h"

#define FEW_POSITIONS 16u /* sums in memory take fewer instructions than sums in registers */

static void play_sums_by_position(const struct tinyml_play_sums *r, const int8_t *x, int32_t *sums)
{
	for (uint32_t i = 0; i < r->positions; i++) {
		for (uint32_t c = 0; c < r->channels; c++) {
			sums[c] = tinyml_play_plus(sums[c], *x++);
		}
	}
}

void tinyml_play_sums_s8(const struct tinyml_play *play)
{
	const struct tinyml_play_sums *r = play->record;
	const uint32_t channels = r->channels;
	const int8_t *x = play->operand[0];
	int32_t *sums = play->operand[1];

	if (r->positions < FEW_POSITIONS || channels % 4u != 0u) {
		play_sums_by_position(r, x, sums);
		return;
	}
	for (uint32_t c = 0; c < channels; c += 4u, sums += 4) {
		const int8_t *at = x + c;
		int32_t sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;

		for (uint32_t left = r->positions; left > 0u; left--) {
			sum0 += at[0];
			sum1 += at[1];
			sum2 += at[2];
			sum3 += at[3];
			at += channels;
		}
		sums[0] = tinyml_play_plus(sums[0], sum0);
		sums[1] = tinyml_play_plus(sums[1], sum1);
		sums[2] = tinyml_play_plus(sums[2], sum2);
		sums[3] = tinyml_play_plus(sums[3], sum3);
	}
}

uint32_t tinyml_check_sums_s8(struct tinyml_check *check)
{
	const struct tinyml_play_sums *r = check->record;
	const uint32_t count = tinyml_check_times(r->positions, r->channels);

	/* sums in registers stay within 32 bits */
	tinyml_check_that(check, r->positions > 0u && r->channels > 0u && r->positions <= 1u << 23);
	tinyml_check_reads(check, 0, count, 1);
	tinyml_check_writes(check, 1, tinyml_check_times(r->channels, 4), 4);
	return count;
}

void tinyml_play_means_s8(const struct tinyml_play *play)
{
	const struct tinyml_play_means *r = play->record;
	const int32_t *sums = play->operand[0];
	int8_t *y = play->operand[1];

	for (uint32_t c = 0; c < r->count; c++) {
		const int32_t sum =
			tinyml_play_plus(tinyml_play_times(sums[c], r->factor), r->offset);

		y[c] = (int8_t)tinyml_clamp(sum >> r->shift, r->out_min, r->out_max);
	}
}

uint32_t tinyml_check_means_s8(struct tinyml_check *check)
{
	const struct tinyml_play_means *r = check->record;

	tinyml_check_that(check, r->shift >= 0 && r->shift < 32);
	tinyml_check_reads(check, 0, tinyml_check_times(r->count, 4), 4);
	tinyml_check_writes(check, 1, r->count, 1);
	return r->count;
}

/* The sum of the elements that become one. */
static int32_t play_sums_reduced(const struct tinyml_play_reduce_s8 *r, const int8_t *x)
{
	const int32_t step = r->inner_steps[3];
	int32_t sum = r->offset;

	for (uint32_t i = r->inner_extents[0]; i > 0u; i--, x += r->inner_steps[0]) {
		const int8_t *x1 = x;

		for (uint32_t j = r->inner_extents[1]; j > 0u; j--, x1 += r->inner_steps[1]) {
			const int8_t *x2 = x1;

			for (uint32_t k = r->inner_extents[2]; k > 0u;
			     k--, x2 += r->inner_steps[2]) {
				const int8_t *at = x2;

				for (uint32_t l = r->inner_extents[3]; l > 0u; l--, at += step) {
					sum = tinyml_play_plus(sum, *at);
				}
			}
		}
	}
	return sum;
}

static int8_t play_sums_output(const struct tinyml_play_reduce_s8 *r, const int8_t *x)
{
	int32_t sum = play_sums_reduced(r, x);

	if (r->rounding == TINYML_PLAY_TWICE) {
		sum = tinyml_rescale(sum, r->multiplier, r->shift);
	} else if (r->rounding == TINYML_PLAY_TO_EVEN) {
		sum = tinyml_rescale_to_even(sum, r->multiplier, r->shift);
	} else {
		sum = tinyml_rescale_away(sum, r->multiplier, r->shift);
	}
	return (int8_t)tinyml_clamp(tinyml_play_plus(sum, r->out_zero), r->out_min, r->out_max);
}

void tinyml_play_reduce_s8(const struct tinyml_play *play)
{
	const struct tinyml_play_reduce_s8 *r = play->record;
	const int8_t *x = play->operand[0];
	int8_t *y = play->operand[1];

	for (uint32_t i = r->extents[0]; i > 0u; i--, x += r->steps[0]) {
		const int8_t *x1 = x;

		for (uint32_t j = r->extents[1]; j > 0u; j--, x1 += r->steps[1]) {
			const int8_t *x2 = x1;

			for (uint32_t k = r->extents[2]; k > 0u; k--, x2 += r->steps[2]) {
				const int8_t *at = x2;

				for (uint32_t l = r->extents[3]; l > 0u; l--, at += r->steps[3]) {
					*y++ = play_sums_output(r, at);
				}
			}
		}
	}
}

uint32_t tinyml_check_reduce_s8(struct tinyml_check *check)
{
	const struct tinyml_play_reduce_s8 *r = check->record;
	const uint32_t outputs = tinyml_check_loops(check, r->extents);
	const uint32_t terms = tinyml_check_loops(check, r->inner_extents);
	uint32_t last, inner;

	/* 32 bits hold what is multiplied */
	tinyml_check_that(check, tinyml_check_factor(r->multiplier, r->shift) &&
					 terms <= 1u << 22 && r->offset >= -(1 << 30) &&
					 r->offset <= 1 << 30);
	if (check->wrong) {
		return 0;
	}
	last = tinyml_check_elements(check, r->extents, r->steps, 1);
	inner = tinyml_check_elements(check, r->inner_extents, r->inner_steps, 1);
	tinyml_check_reads(check, 0, tinyml_check_plus(last, inner) - 1u, 1);
	tinyml_check_writes(check, 1, outputs, 1);
	return tinyml_check_times(outputs, tinyml_check_plus(terms, 1));
}
