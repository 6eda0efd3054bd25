/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Transposed convolutions: for each output, the taps that meet an element of the input. */

#include <stddef.h>

#include <tinyml/conv_s16.h>
#include <tinyml/fixed_point.h>
#include <tinyml/play_records.h>

#include "window.h"

/* Where a tap meets the input along one axis; negative: nowhere. */
static int32_t play_conv_transpose_meets(int32_t place, int32_t tap, int32_t stride,
					 int32_t dilation, int32_t in)
{
	const int32_t from = place - tap * dilation;

	if (from < 0 || from % stride != 0 || from / stride >= in) {
		return -1;
	}
	return from / stride;
}

/* The taps that meet the input along one axis; they are as far apart as the elements that they
 * meet. */
struct play_conv_transpose_run {
	int32_t taps;
	int32_t tap, tap_step;
	int32_t from, from_step;
};

static struct play_conv_transpose_run play_conv_transpose_find(int32_t place, int32_t stride,
							       int32_t kernel, int32_t dilation,
							       int32_t in)
{
	struct play_conv_transpose_run run = {0, 0, 0, 0, 0};

	for (int32_t tap = 0; tap < kernel; tap++) {
		const int32_t from = play_conv_transpose_meets(place, tap, stride, dilation, in);

		if (from < 0) {
			continue;
		}
		if (run.taps == 0) {
			run.tap = tap;
			run.from = from;
		} else if (run.taps == 1) {
			run.tap_step = tap - run.tap;
			run.from_step = from - run.from;
		}
		run.taps++;
	}
	return run;
}

static struct play_conv_transpose_run play_conv_transpose_rows(const struct tinyml_window *w,
							       int32_t place)
{
	return play_conv_transpose_find(place + w->pad_top, w->stride_h, w->kernel_h, w->dilation_h,
					w->in_h);
}

static struct play_conv_transpose_run play_conv_transpose_columns(const struct tinyml_window *w,
								  int32_t place)
{
	return play_conv_transpose_find(place + w->pad_left, w->stride_w, w->kernel_w,
					w->dilation_w, w->in_w);
}

/* The loops of all types over the taps of `rows` and `columns`. SUM adds products of x and w to a
 * sum. */
#define TAPS(SUM)                                                                                  \
	for (int32_t i = 0, ky = rows.tap, row = rows.from; i < rows.taps;                         \
	     i++, ky += rows.tap_step, row += rows.from_step) {                                    \
		for (int32_t j = 0, kx = columns.tap, column = columns.from; j < columns.taps;     \
		     j++, kx += columns.tap_step, column += columns.from_step) {                   \
			SUM;                                                                       \
		}                                                                                  \
	}

/* Offsets of what a tap multiplies. */
#define INPUT(w)  ((row * (w)->in_w + column) * (w)->in_c + c / outs * ins)
#define FILTER(w) (((c * (w)->kernel_h + ky) * (w)->kernel_w + kx) * ins)

void tinyml_play_conv_transpose_f32(const struct tinyml_play *play)
{
	const struct tinyml_play_conv_transpose_f32 *r = play->record;
	const struct tinyml_window *const w = &r->window;
	const int32_t ins = w->in_c / r->groups, outs = w->out_c / r->groups;
	const float *const weights = (const void *)(play->image + r->weights);
	const float *const bias = r->bias != 0u ? (const void *)(play->image + r->bias) : NULL;
	const float *x = play->operand[0];
	float *y = play->operand[1];

	for (int32_t n = 0; n < w->batches; n++, x += w->in_h * w->in_w * w->in_c) {
		for (int32_t o = 0; o < w->out_h * w->out_w; o++) {
			const struct play_conv_transpose_run rows =
				play_conv_transpose_rows(w, o / w->out_w);
			const struct play_conv_transpose_run columns =
				play_conv_transpose_columns(w, o % w->out_w);

			for (int32_t c = 0; c < w->out_c; c++) {
				float sum = bias != NULL ? bias[c] : 0.0f;

				TAPS(for (int32_t k = 0; k < ins; k++) {
					sum += x[INPUT(w) + k] * weights[FILTER(w) + k];
				});
				sum = sum < r->out_min ? r->out_min : sum;
				*y++ = sum > r->out_max ? r->out_max : sum;
			}
		}
	}
}

void tinyml_play_conv_transpose_s8(const struct tinyml_play *play)
{
	const struct tinyml_play_conv_transpose_s8 *r = play->record;
	const struct tinyml_window *const w = &r->window;
	const int32_t ins = w->in_c / r->groups, outs = w->out_c / r->groups;
	const int32_t in_zero = r->in_zero, weight_zero = r->weight_zero;
	const int8_t *const weights = (const void *)(play->image + r->weights);
	const int32_t *const bias = r->bias != 0u ? (const void *)(play->image + r->bias) : NULL;
	const int32_t *const multiplier = (const void *)(play->image + r->multiplier);
	const int8_t *const shift = (const void *)(play->image + r->shift);
	const int8_t *x = play->operand[0];
	int8_t *y = play->operand[1];

	for (int32_t n = 0; n < w->batches; n++, x += w->in_h * w->in_w * w->in_c) {
		for (int32_t o = 0; o < w->out_h * w->out_w; o++) {
			const struct play_conv_transpose_run rows =
				play_conv_transpose_rows(w, o / w->out_w);
			const struct play_conv_transpose_run columns =
				play_conv_transpose_columns(w, o % w->out_w);

			for (int32_t c = 0; c < w->out_c; c++) {
				int32_t sum = bias != NULL ? bias[c] : 0;

				TAPS(for (int32_t k = 0; k < ins; k++) {
					sum += (x[INPUT(w) + k] - in_zero) *
					       (weights[FILTER(w) + k] - weight_zero);
				});
				sum = r->round_once != 0u
					      ? tinyml_rescale_once(sum, multiplier[c], shift[c])
					      : tinyml_rescale(sum, multiplier[c], shift[c]);
				*y++ = (int8_t)tinyml_clamp(sum + r->out_zero, r->out_min,
							    r->out_max);
			}
		}
	}
}

void tinyml_play_conv_transpose_s16(const struct tinyml_play *play)
{
	const struct tinyml_play_conv_transpose_s8 *r = play->record;
	const struct tinyml_window *const w = &r->window;
	const int32_t ins = w->in_c / r->groups, outs = w->out_c / r->groups;
	const int8_t *const weights = (const void *)(play->image + r->weights);
	const int64_t *const bias = r->bias != 0u ? (const void *)(play->image + r->bias) : NULL;
	const int32_t *const multiplier = (const void *)(play->image + r->multiplier);
	const int8_t *const shift = (const void *)(play->image + r->shift);
	const int16_t *x = play->operand[0];
	int16_t *y = play->operand[1];

	for (int32_t n = 0; n < w->batches; n++, x += w->in_h * w->in_w * w->in_c) {
		for (int32_t o = 0; o < w->out_h * w->out_w; o++) {
			const struct play_conv_transpose_run rows =
				play_conv_transpose_rows(w, o / w->out_w);
			const struct play_conv_transpose_run columns =
				play_conv_transpose_columns(w, o % w->out_w);

			for (int32_t c = 0; c < w->out_c; c++) {
				int64_t sum = bias != NULL ? bias[c] : 0;

				TAPS(for (int32_t k = 0; k < ins; k++) {
					sum += x[INPUT(w) + k] * weights[FILTER(w) + k];
				});
				*y++ = r->round_once != 0u
					       ? tinyml_narrow_s64_once(sum, multiplier[c],
									shift[c], r->out_min,
									r->out_max)
					       : tinyml_narrow_s64(sum, multiplier[c], shift[c],
								   r->out_min, r->out_max);
			}
		}
	}
}

/* One axis; any number of outputs, which may meet nothing. */
static bool play_conv_transpose_axis(int32_t in, int32_t out, int32_t kernel, int32_t stride,
				     int32_t dilation, int32_t pad)
{
	return in > 0 && out > 0 && kernel > 0 && stride > 0 && dilation > 0 && pad >= 0;
}

/* Returns the elements of a filter; 0 if something is wrong. */
static uint32_t play_conv_transpose_check(struct tinyml_check *check, const struct tinyml_window *w,
					  int32_t groups, uint32_t weights, uint32_t size,
					  uint32_t weight_size)
{
	const uint32_t inputs = tinyml_check_image(w->batches, w->in_h, w->in_w, w->in_c);
	const uint32_t outputs = tinyml_check_image(w->batches, w->out_h, w->out_w, w->out_c);
	uint32_t elements;

	tinyml_check_that(
		check, w->batches > 0 && w->in_c > 0 && w->out_c > 0 && groups > 0 &&
			       play_conv_transpose_axis(w->in_h, w->out_h, w->kernel_h, w->stride_h,
							w->dilation_h, w->pad_top) &&
			       play_conv_transpose_axis(w->in_w, w->out_w, w->kernel_w, w->stride_w,
							w->dilation_w, w->pad_left) &&
			       weights != 0u);
	if (check->wrong) {
		return 0;
	}
	tinyml_check_that(check, w->in_c % groups == 0 && w->out_c % groups == 0);
	tinyml_check_reads(check, 0, tinyml_check_times(inputs, size), size);
	tinyml_check_writes(check, 1, tinyml_check_times(outputs, size), size);
	elements = tinyml_check_times(tinyml_check_taps(w), (uint32_t)(w->in_c / groups));
	tinyml_check_constants(
		check, weights,
		tinyml_check_times(tinyml_check_times(elements, (uint32_t)w->out_c), weight_size),
		weight_size);
	return check->wrong ? 0u : elements;
}

static uint32_t play_conv_transpose_work(const struct tinyml_window *w, uint32_t elements)
{
	return tinyml_check_times(
		tinyml_check_image(w->batches, w->out_h, w->out_w, w->out_c),
		tinyml_check_plus(
			tinyml_check_plus(elements, tinyml_check_times(tinyml_check_taps(w), 4)),
			4));
}

uint32_t tinyml_check_conv_transpose_f32(struct tinyml_check *check)
{
	const struct tinyml_play_conv_transpose_f32 *r = check->record;
	const uint32_t elements =
		play_conv_transpose_check(check, &r->window, r->groups, r->weights, 4, 4);

	if (r->bias != 0u) {
		tinyml_check_constants(check, r->bias,
				       tinyml_check_times((uint32_t)r->window.out_c, 4), 4);
	}
	return play_conv_transpose_work(&r->window, elements);
}

/* Integers; `most` is the largest shift. */
static uint32_t play_conv_transpose_whole(struct tinyml_check *check, uint32_t size,
					  uint32_t bias_size, int32_t least, int32_t most)
{
	const struct tinyml_play_conv_transpose_s8 *r = check->record;
	const struct tinyml_window *const w = &r->window;
	const uint32_t elements =
		play_conv_transpose_check(check, w, r->groups, r->weights, size, 1);
	const uint32_t channels = (uint32_t)w->out_c;

	if (check->wrong) {
		return 0;
	}
	tinyml_check_constants(check, r->multiplier, tinyml_check_times(channels, 4), 4);
	tinyml_check_constants(check, r->shift, channels, 1);
	if (r->bias != 0u) {
		tinyml_check_constants(check, r->bias, tinyml_check_times(channels, bias_size),
				       bias_size);
	}
	tinyml_check_that(check, r->multiplier != 0u && r->shift != 0u);
	for (uint32_t i = 0; !check->wrong && i < channels; i++) {
		const int32_t shift = ((const int8_t *)check->image)[r->shift + i];

		tinyml_check_that(check, shift >= least && shift <= most);
	}
	return play_conv_transpose_work(w, elements);
}

uint32_t tinyml_check_conv_transpose_s8(struct tinyml_check *check)
{
	return play_conv_transpose_whole(check, 1, 4, -31, 30);
}

uint32_t tinyml_check_conv_transpose_s16(struct tinyml_check *check)
{
	return play_conv_transpose_whole(check, 2, 8, -47, 14);
}
