/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Pools of float: means and maxima of the elements of each window that are inside the input. */

#include "window.h"

#include <tinyml/play_records.h>

/* The rows and columns of a window of one channel. */
struct play_windows_f32_part {
	int32_t rows, columns;
	int32_t row_step, column_step;
};

/* All channels of a window, whose first element is at `x`. */
typedef void play_windows_f32_reduce(const struct tinyml_play_pool_f32 *r,
				     const struct play_windows_f32_part *part, const float *x,
				     float *y);

static void play_windows_f32_mean(const struct tinyml_play_pool_f32 *r,
				  const struct play_windows_f32_part *given, const float *x,
				  float *y)
{
	/* Copies, which a number that is written cannot change: they stay in registers. */
	const struct play_windows_f32_part part = *given;
	const float low = r->out_min, high = r->out_max;
	const float divisor = r->divisor != 0.0f ? r->divisor : (float)(part.rows * part.columns);
	const float *const end = x + r->window.in_c;

	for (; x != end; x++) {
		const float *row = x;
		float sum = 0.0f, mean;

		for (int32_t rows = part.rows; rows > 0; rows--, row += part.row_step) {
			const float *at = row;

			for (int32_t left = part.columns; left > 0;
			     left--, at += part.column_step) {
				sum += *at;
			}
		}
		mean = sum / divisor;
		mean = mean < low ? low : mean;
		*y++ = mean > high ? high : mean;
	}
}

static void play_windows_f32_max(const struct tinyml_play_pool_f32 *r,
				 const struct play_windows_f32_part *given, const float *x,
				 float *y)
{
	const struct play_windows_f32_part part = *given;
	const float low = r->out_min, high = r->out_max;
	const float *const end = x + r->window.in_c;

	for (; x != end; x++) {
		const float *row = x;
		float best = low;

		for (int32_t rows = part.rows; rows > 0; rows--, row += part.row_step) {
			const float *at = row;

			for (int32_t left = part.columns; left > 0;
			     left--, at += part.column_step) {
				best = *at > best || *at != *at ? *at : best; /* NaN wins */
			}
		}
		*y++ = best > high ? high : best;
	}
}

static void play_windows_f32_all(const struct tinyml_play *play, play_windows_f32_reduce *reduce)
{
	const struct tinyml_play_pool_f32 *r = play->record;
	const struct tinyml_window *const w = &r->window;
	const int32_t line = w->in_w * w->in_c;
	const float *x = play->operand[0];
	float *y = play->operand[1];
	struct play_windows_f32_part part = {.row_step = w->dilation_h * line,
					     .column_step = w->dilation_w * w->in_c};

	for (int32_t n = 0; n < w->batches; n++, x += w->in_h * line) {
		for (int32_t i = 0; i < w->out_h; i++) {
			const struct tinyml_play_cut h = tinyml_play_cut(
				w->in_h, i, w->stride_h, w->kernel_h, w->dilation_h, w->pad_top);

			for (int32_t j = 0; j < w->out_w; j++, y += w->in_c) {
				const struct tinyml_play_cut v =
					tinyml_play_cut(w->in_w, j, w->stride_w, w->kernel_w,
							w->dilation_w, w->pad_left);
				const bool some = h.taps > 0 && v.taps > 0;
				const int32_t at = some ? h.begin * line + v.begin * w->in_c : 0;

				part.rows = some ? h.taps : 0;
				part.columns = v.taps;
				reduce(r, &part, x + at, y);
			}
		}
	}
}

void tinyml_play_average_pool_f32(const struct tinyml_play *play)
{
	play_windows_f32_all(play, play_windows_f32_mean);
}

void tinyml_play_max_pool_f32(const struct tinyml_play *play)
{
	play_windows_f32_all(play, play_windows_f32_max);
}

uint32_t tinyml_check_pool_f32(struct tinyml_check *check)
{
	const struct tinyml_play_pool_f32 *r = check->record;
	const struct tinyml_window *const w = &r->window;
	const uint32_t outputs = tinyml_check_window(check, w, 4);

	/* steps fit into 32 bits */
	tinyml_check_that(check, w->in_c == w->out_c && tinyml_check_taps(w) <= 1u << 22);
	if (check->wrong) {
		return 0;
	}
	return tinyml_check_times(outputs, tinyml_check_plus(tinyml_check_taps(w), 1));
}
