/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Pools of any window: means and maxima of the elements that are inside the input. */

#include <tinyml/fixed_point.h>
#include <tinyml/pool.h>

#include "nest.h"
#include "window.h"

/* A window of all channels: where it begins, its taps and their steps. */
struct play_windows_s8_part {
	const int8_t *x;
	int32_t rows, columns;
	int32_t row_step, column_step;
};

typedef void play_windows_s8_reduce(const void *record, const struct play_windows_s8_part *part,
				    int8_t *y);

/* Call `reduce` for every window, in the order of the output. */
static void play_windows_s8_all(const struct tinyml_play *play, const struct tinyml_window *w,
				play_windows_s8_reduce *reduce)
{
	const int32_t line = w->in_w * w->in_c;
	const int8_t *x = play->operand[0];
	int8_t *y = play->operand[1];
	struct play_windows_s8_part part = {.row_step = w->dilation_h * line,
					    .column_step = w->dilation_w * w->in_c};

	for (int32_t n = 0; n < w->batches; n++, x += w->in_h * line) {
		for (int32_t i = 0; i < w->out_h; i++) {
			const struct tinyml_play_cut h = tinyml_play_cut(
				w->in_h, i, w->stride_h, w->kernel_h, w->dilation_h, w->pad_top);

			part.rows = h.taps;
			for (int32_t j = 0; j < w->out_w; j++, y += w->in_c) {
				const struct tinyml_play_cut v =
					tinyml_play_cut(w->in_w, j, w->stride_w, w->kernel_w,
							w->dilation_w, w->pad_left);

				part.columns = v.taps;
				part.x = x;
				if (h.taps > 0 && v.taps > 0) {
					part.x += h.begin * line + v.begin * w->in_c;
				} else {
					part.rows = 0;
				}
				reduce(play->record, &part, y);
				part.rows = h.taps;
			}
		}
	}
}

static int32_t play_windows_s8_sum(const struct play_windows_s8_part *part, const int8_t *x)
{
	int32_t sum = 0;

	for (int32_t rows = part->rows; rows > 0; rows--, x += part->row_step) {
		const int8_t *at = x;

		for (int32_t left = part->columns; left > 0; left--, at += part->column_step) {
			sum += *at;
		}
	}
	return sum;
}

static void play_windows_s8_mean(const void *record, const struct play_windows_s8_part *part,
				 int8_t *y)
{
	const struct tinyml_pool_s8 *r = record;

	for (int32_t c = 0; c < r->window.in_c; c++) {
		const int32_t sum = tinyml_play_plus(
			tinyml_play_times(play_windows_s8_sum(part, part->x + c), r->factor),
			r->offset);

		y[c] = (int8_t)tinyml_clamp(sum >> r->shift, r->out_min, r->out_max);
	}
}

void tinyml_play_mean_s8(const struct tinyml_play *play)
{
	const struct tinyml_pool_s8 *r = play->record;

	play_windows_s8_all(play, &r->window, play_windows_s8_mean);
}

/* The quotient of a sum, rounded as the record says. */
static int32_t play_windows_s8_quotient(const struct tinyml_play_mean_any_s8 *r, int32_t sum,
					int32_t count)
{
	if (r->halves == TINYML_PLAY_HALVES_EVEN) {
		return tinyml_divide_to_even(sum - count * r->zero, count) + r->zero;
	}
	if (r->halves == TINYML_PLAY_HALVES_UP) {
		sum += count / 2;
		return (sum < 0 ? sum - count + 1 : sum) / count;
	}
	return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

static void play_windows_s8_mean_any(const void *record, const struct play_windows_s8_part *part,
				     int8_t *y)
{
	const struct tinyml_play_mean_any_s8 *r = record;
	const int32_t count = part->rows * part->columns;

	for (int32_t c = 0; c < r->window.in_c; c++) {
		const int32_t sum = play_windows_s8_sum(part, part->x + c);
		const int32_t mean = count > 0 ? play_windows_s8_quotient(r, sum, count) : 0;

		y[c] = (int8_t)tinyml_clamp(mean, r->out_min, r->out_max);
	}
}

void tinyml_play_mean_any_s8(const struct tinyml_play *play)
{
	const struct tinyml_play_mean_any_s8 *r = play->record;

	play_windows_s8_all(play, &r->window, play_windows_s8_mean_any);
}

static void play_windows_s8_max(const void *record, const struct play_windows_s8_part *part,
				int8_t *y)
{
	const struct tinyml_play_max_pool_s8 *r = record;

	for (int32_t c = 0; c < r->window.in_c; c++) {
		const int8_t *x = part->x + c;
		int32_t best = r->out_min;

		for (int32_t rows = part->rows; rows > 0; rows--, x += part->row_step) {
			const int8_t *at = x;

			for (int32_t left = part->columns; left > 0;
			     left--, at += part->column_step) {
				best = *at > best ? *at : best;
			}
		}
		y[c] = (int8_t)(best > r->out_max ? r->out_max : best);
	}
}

void tinyml_play_max_pool_s8(const struct tinyml_play *play)
{
	const struct tinyml_play_max_pool_s8 *r = play->record;

	play_windows_s8_all(play, &r->window, play_windows_s8_max);
}

static uint32_t play_windows_s8_check(struct tinyml_check *check, const struct tinyml_window *w)
{
	const uint32_t outputs = tinyml_check_window_s8(check, w);

	if (check->wrong) {
		return 0;
	}
	tinyml_check_that(check, w->in_c == w->out_c && tinyml_check_taps(w) <= 1u << 22);
	return tinyml_check_times(outputs, tinyml_check_plus(tinyml_check_taps(w), 1));
}

uint32_t tinyml_check_mean_s8(struct tinyml_check *check)
{
	const struct tinyml_pool_s8 *r = check->record;

	tinyml_check_that(check, r->shift >= 0 && r->shift < 32);
	return play_windows_s8_check(check, &r->window);
}

uint32_t tinyml_check_mean_any_s8(struct tinyml_check *check)
{
	const struct tinyml_play_mean_any_s8 *r = check->record;

	tinyml_check_that(check, r->zero >= -256 && r->zero <= 256);
	return play_windows_s8_check(check, &r->window);
}

uint32_t tinyml_check_max_pool_s8(struct tinyml_check *check)
{
	const struct tinyml_play_max_pool_s8 *r = check->record;

	return play_windows_s8_check(check, &r->window);
}
