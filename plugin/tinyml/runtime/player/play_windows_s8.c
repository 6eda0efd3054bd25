/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Pools of any window: means and maxima of the elements that are inside the input. */

#include <string.h>

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

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* The sum of a window of one channel; most have two rows and columns. */
static ALWAYS_INLINE int32_t play_windows_s8_sum(const struct play_windows_s8_part *part,
						 const int8_t *x)
{
	int32_t sum = 0;

	if (part->rows == 2 && part->columns == 2) {
		const int8_t *const next = x + part->row_step;

		return x[0] + x[part->column_step] + next[0] + next[part->column_step];
	}
	for (int32_t rows = part->rows; rows > 0; rows--, x += part->row_step) {
		const int8_t *at = x;

		for (int32_t left = part->columns; left > 0; left--, at += part->column_step) {
			sum += *at;
		}
	}
	return sum;
}

static ALWAYS_INLINE int32_t play_windows_s8_larger(int32_t a, int32_t b)
{
	return a > b ? a : b;
}

/* The largest element of a window of one channel that is larger than `best`, or `best`. */
static ALWAYS_INLINE int32_t play_windows_s8_largest(const struct play_windows_s8_part *part,
						     const int8_t *x, int32_t best)
{
	if (part->rows == 2 && part->columns == 2) {
		const int8_t *const next = x + part->row_step;

		best = play_windows_s8_larger(best, x[0]);
		best = play_windows_s8_larger(best, x[part->column_step]);
		best = play_windows_s8_larger(best, next[0]);
		return play_windows_s8_larger(best, next[part->column_step]);
	}
	for (int32_t rows = part->rows; rows > 0; rows--, x += part->row_step) {
		const int8_t *at = x;

		for (int32_t left = part->columns; left > 0; left--, at += part->column_step) {
			best = play_windows_s8_larger(best, *at);
		}
	}
	return best;
}

static void play_windows_s8_mean(const void *record, const struct play_windows_s8_part *given,
				 int8_t *y)
{
	const struct tinyml_pool_s8 *r = record;
	/* Copies, which a byte that is written cannot change: they stay in registers. */
	const struct play_windows_s8_part part = *given;
	const int32_t factor = r->factor, offset = r->offset, shift = r->shift;
	const int32_t low = r->out_min, high = r->out_max;
	const int8_t *x = part.x, *const end = x + r->window.in_c;

	for (; x != end; x++) {
		const int32_t sum = tinyml_play_plus(
			tinyml_play_times(play_windows_s8_sum(&part, x), factor), offset);

		*y++ = (int8_t)tinyml_clamp(sum >> shift, low, high);
	}
}

void tinyml_play_mean_s8(const struct tinyml_play *play)
{
	const struct tinyml_pool_s8 *r = play->record;

	play_windows_s8_all(play, &r->window, play_windows_s8_mean);
}

/* TINYML_PLAY_HALVES_EVEN for counts of 2, 4, 8 and so on, which need no division. */
#define PLAY_WINDOWS_SHIFT UINT32_MAX

/* The quotient of a sum, rounded as the record says. */
static ALWAYS_INLINE int32_t play_windows_s8_quotient(uint32_t halves, int32_t zero, int32_t sum,
						      int32_t count)
{
	if (halves == PLAY_WINDOWS_SHIFT) {
		const int32_t raised = sum - count * zero + count / 2;
		const int32_t rounded = raised >> __builtin_ctz((uint32_t)count);

		return ((raised & (count - 1)) == 0 ? rounded & ~1 : rounded) + zero;
	}
	if (halves == TINYML_PLAY_HALVES_EVEN) {
		return tinyml_divide_to_even(sum - count * zero, count) + zero;
	}
	if (halves == TINYML_PLAY_HALVES_UP) {
		sum += count / 2;
		return (sum < 0 ? sum - count + 1 : sum) / count;
	}
	return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

/* All channels of a window; `halves` is known where this is inlined. */
static ALWAYS_INLINE void play_windows_s8_means(const struct tinyml_play_mean_any_s8 *r,
						const struct play_windows_s8_part *given,
						uint32_t halves, int8_t *y)
{
	const struct play_windows_s8_part part = *given;
	const int32_t count = part.rows * part.columns;
	const int32_t zero = r->zero, low = r->out_min, high = r->out_max;
	const int8_t *x = part.x, *const end = x + r->window.in_c;

	for (; x != end; x++) {
		const int32_t sum = play_windows_s8_sum(&part, x);

		*y++ = (int8_t)tinyml_clamp(play_windows_s8_quotient(halves, zero, sum, count), low,
					    high);
	}
}

static void play_windows_s8_mean_any(const void *record, const struct play_windows_s8_part *part,
				     int8_t *y)
{
	const struct tinyml_play_mean_any_s8 *r = record;

	const int32_t count = part->rows * part->columns;

	if (count == 0) {
		memset(y, tinyml_clamp(0, r->out_min, r->out_max), (size_t)r->window.in_c);
	} else if (r->halves == TINYML_PLAY_HALVES_EVEN && count > 1 &&
		   (count & (count - 1)) == 0) {
		play_windows_s8_means(r, part, PLAY_WINDOWS_SHIFT, y);
	} else {
		play_windows_s8_means(r, part, r->halves, y);
	}
}

void tinyml_play_mean_any_s8(const struct tinyml_play *play)
{
	const struct tinyml_play_mean_any_s8 *r = play->record;

	play_windows_s8_all(play, &r->window, play_windows_s8_mean_any);
}

static void play_windows_s8_max(const void *record, const struct play_windows_s8_part *given,
				int8_t *y)
{
	const struct tinyml_play_max_pool_s8 *r = record;
	const struct play_windows_s8_part part = *given;
	const int32_t low = r->out_min, high = r->out_max;
	const int8_t *x = part.x, *const end = x + r->window.in_c;

	for (; x != end; x++) {
		const int32_t best = play_windows_s8_largest(&part, x, low);

		*y++ = (int8_t)(best > high ? high : best);
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
