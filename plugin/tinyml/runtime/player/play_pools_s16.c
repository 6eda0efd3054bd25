/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Pools and reductions of int16, with the records of those of int8. */

#include <tinyml/fixed_point.h>

#include "nest.h"
#include "window.h"

#define MOST_TERMS (1u << 14) /* whose sum 32 bits hold */

/* The elements of one channel of a window, `rows` times `columns`. */
struct play_pools_s16_part {
	int32_t rows, columns;
	int32_t row_step, column_step;
};

static int32_t play_pools_s16_largest(const struct play_pools_s16_part *part, const int16_t *x,
				      int32_t best)
{
	for (int32_t rows = part->rows; rows > 0; rows--, x += part->row_step) {
		const int16_t *at = x;

		for (int32_t left = part->columns; left > 0; left--, at += part->column_step) {
			best = *at > best ? *at : best;
		}
	}
	return best;
}

static int32_t play_pools_s16_sum(const struct play_pools_s16_part *part, const int16_t *x)
{
	int32_t sum = 0;

	for (int32_t rows = part->rows; rows > 0; rows--, x += part->row_step) {
		const int16_t *at = x;

		for (int32_t left = part->columns; left > 0; left--, at += part->column_step) {
			sum += *at;
		}
	}
	return sum;
}

/* The quotient of a sum, rounded as the record says. */
static int32_t play_pools_s16_mean(const struct tinyml_play_mean_any_s8 *r, int32_t sum,
				   int32_t count)
{
	if (count == 0) {
		return 0;
	}
	if (r->halves == TINYML_PLAY_HALVES_EVEN) {
		return tinyml_divide_to_even(sum - count * r->zero, count) + r->zero;
	}
	if (r->halves == TINYML_PLAY_HALVES_UP) {
		sum += count / 2;
		return (sum < 0 ? sum - count + 1 : sum) / count;
	}
	return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

/* Makes an output of one channel of a window. */
typedef int32_t play_pools_s16_one(const void *record, const struct play_pools_s16_part *part,
				   const int16_t *x);

static int32_t play_pools_s16_max_one(const void *record, const struct play_pools_s16_part *part,
				      const int16_t *x)
{
	const struct tinyml_play_max_pool_s8 *r = record;
	const int32_t best = play_pools_s16_largest(part, x, r->out_min);

	return best > r->out_max ? r->out_max : best;
}

static int32_t play_pools_s16_mean_one(const void *record, const struct play_pools_s16_part *part,
				       const int16_t *x)
{
	const struct tinyml_play_mean_any_s8 *r = record;
	const int32_t sum = play_pools_s16_sum(part, x);

	return tinyml_clamp(play_pools_s16_mean(r, sum, part->rows * part->columns), r->out_min,
			    r->out_max);
}

static void play_pools_s16_all(const struct tinyml_play *play, const struct tinyml_window *w,
			       play_pools_s16_one *one)
{
	const int32_t line = w->in_w * w->in_c;
	const int16_t *x = play->operand[0];
	int16_t *y = play->operand[1];
	struct play_pools_s16_part part = {.row_step = w->dilation_h * line,
					   .column_step = w->dilation_w * w->in_c};

	for (int32_t n = 0; n < w->batches; n++, x += w->in_h * line) {
		for (int32_t o = 0; o < w->out_h * w->out_w; o++) {
			const struct tinyml_play_cut h =
				tinyml_play_cut(w->in_h, o / w->out_w, w->stride_h, w->kernel_h,
						w->dilation_h, w->pad_top);
			const struct tinyml_play_cut v =
				tinyml_play_cut(w->in_w, o % w->out_w, w->stride_w, w->kernel_w,
						w->dilation_w, w->pad_left);
			const bool some = h.taps > 0 && v.taps > 0;
			const int16_t *at = x + (some ? h.begin * line + v.begin * w->in_c : 0);

			part.rows = some ? h.taps : 0;
			part.columns = v.taps;
			for (int32_t c = 0; c < w->in_c; c++) {
				*y++ = (int16_t)one(play->record, &part, at + c);
			}
		}
	}
}

void tinyml_play_max_pool_s16(const struct tinyml_play *play)
{
	const struct tinyml_play_max_pool_s8 *r = play->record;

	play_pools_s16_all(play, &r->window, play_pools_s16_max_one);
}

void tinyml_play_mean_any_s16(const struct tinyml_play *play)
{
	const struct tinyml_play_mean_any_s8 *r = play->record;

	play_pools_s16_all(play, &r->window, play_pools_s16_mean_one);
}

static uint32_t play_pools_s16_check(struct tinyml_check *check, const struct tinyml_window *w)
{
	const uint32_t outputs = tinyml_check_window(check, w, 2);

	if (check->wrong) {
		return 0;
	}
	tinyml_check_that(check, w->in_c == w->out_c && tinyml_check_taps(w) <= MOST_TERMS);
	return tinyml_check_times(outputs, tinyml_check_plus(tinyml_check_taps(w), 1));
}

uint32_t tinyml_check_max_pool_s16(struct tinyml_check *check)
{
	const struct tinyml_play_max_pool_s8 *r = check->record;

	return play_pools_s16_check(check, &r->window);
}

uint32_t tinyml_check_mean_any_s16(struct tinyml_check *check)
{
	const struct tinyml_play_mean_any_s8 *r = check->record;

	tinyml_check_that(check, r->zero >= -256 && r->zero <= 256);
	return play_pools_s16_check(check, &r->window);
}

/* The sum of the elements that become one. */
static int32_t play_pools_s16_reduced(const struct tinyml_play_reduce_s8 *r, const int16_t *x)
{
	uint32_t turn[TINYML_PLAY_LOOPS] = {0}, at = 0;
	int32_t sum = r->offset;

	do {
		sum = tinyml_play_plus(sum, x[(int32_t)at]);
		at = tinyml_play_next(turn, r->inner_extents, r->inner_steps, at);
	} while ((turn[0] | turn[1] | turn[2] | turn[3]) != 0u);
	return sum;
}

void tinyml_play_reduce_s16(const struct tinyml_play *play)
{
	const struct tinyml_play_reduce_s8 *r = play->record;
	const int16_t *const x = play->operand[0];
	int16_t *y = play->operand[1];
	uint32_t turn[TINYML_PLAY_LOOPS] = {0}, at = 0;

	do {
		int32_t sum = play_pools_s16_reduced(r, x + (int32_t)at);

		if (r->rounding == TINYML_PLAY_TWICE) {
			sum = tinyml_rescale(sum, r->multiplier, r->shift);
		} else if (r->rounding == TINYML_PLAY_TO_EVEN) {
			sum = tinyml_rescale_to_even(sum, r->multiplier, r->shift);
		} else {
			sum = tinyml_rescale_away(sum, r->multiplier, r->shift);
		}
		*y++ = (int16_t)tinyml_clamp(tinyml_play_plus(sum, r->out_zero), r->out_min,
					     r->out_max);
		at = tinyml_play_next(turn, r->extents, r->steps, at);
	} while ((turn[0] | turn[1] | turn[2] | turn[3]) != 0u);
}

uint32_t tinyml_check_reduce_s16(struct tinyml_check *check)
{
	const struct tinyml_play_reduce_s8 *r = check->record;
	const uint32_t outputs = tinyml_check_loops(check, r->extents);
	const uint32_t terms = tinyml_check_loops(check, r->inner_extents);
	uint32_t reach;

	tinyml_check_that(check, tinyml_check_factor(r->multiplier, r->shift) &&
					 terms <= MOST_TERMS && r->offset >= -(1 << 30) &&
					 r->offset <= 1 << 30);
	if (check->wrong) {
		return 0;
	}
	reach = tinyml_check_plus(
			tinyml_check_elements(check, r->extents, r->steps, 1),
			tinyml_check_elements(check, r->inner_extents, r->inner_steps, 1)) -
		1u;
	tinyml_check_reads(check, 0, tinyml_check_times(reach, 2), 2);
	tinyml_check_writes(check, 1, tinyml_check_times(outputs, 2), 2);
	return tinyml_check_times(outputs, tinyml_check_plus(terms, 1));
}
