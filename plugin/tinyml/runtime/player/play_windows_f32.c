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

static float play_windows_f32_mean(const struct tinyml_play_pool_f32 *r,
				   const struct play_windows_f32_part *part, const float *x)
{
	float sum = 0.0f;
	float mean;

	for (int32_t i = 0; i < part->rows; i++) {
		for (int32_t j = 0; j < part->columns; j++) {
			sum += x[i * part->row_step + j * part->column_step];
		}
	}
	mean = sum / (r->divisor != 0.0f ? r->divisor : (float)(part->rows * part->columns));
	mean = mean < r->out_min ? r->out_min : mean;
	return mean > r->out_max ? r->out_max : mean;
}

static float play_windows_f32_max(const struct tinyml_play_pool_f32 *r,
				  const struct play_windows_f32_part *part, const float *x)
{
	float best = r->out_min;

	for (int32_t i = 0; i < part->rows; i++) {
		for (int32_t j = 0; j < part->columns; j++) {
			const float v = x[i * part->row_step + j * part->column_step];

			best = v > best || v != v ? v : best; /* what is not a number wins */
		}
	}
	return best > r->out_max ? r->out_max : best;
}

typedef float play_windows_f32_one(const struct tinyml_play_pool_f32 *r,
				   const struct play_windows_f32_part *part, const float *x);

static void play_windows_f32_all(const struct tinyml_play *play, play_windows_f32_one *one)
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

			for (int32_t j = 0; j < w->out_w; j++) {
				const struct tinyml_play_cut v =
					tinyml_play_cut(w->in_w, j, w->stride_w, w->kernel_w,
							w->dilation_w, w->pad_left);
				const bool some = h.taps > 0 && v.taps > 0;
				const int32_t at = some ? h.begin * line + v.begin * w->in_c : 0;

				part.rows = some ? h.taps : 0;
				part.columns = v.taps;
				for (int32_t c = 0; c < w->in_c; c++) {
					*y++ = one(r, &part, x + at + c);
				}
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
