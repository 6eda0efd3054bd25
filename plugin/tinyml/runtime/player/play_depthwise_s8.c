/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise convolutions channel by channel: <tinyml/depthwise_conv.h>. */

#include <stddef.h>
#include <string.h>

#include <tinyml/depthwise_conv.h>
#include <tinyml/play_records.h>

#include "../weighted/nibbles_s8.h"

#include "window.h"

#define SCRATCH 2 /* operand */

_Static_assert(offsetof(struct tinyml_play_depthwise_conv_s8, transposed) ==
		       offsetof(struct tinyml_depthwise_conv_s8, transposed),
	       "records mirror structures");

static void play_depthwise_fill(const struct tinyml_play *play, struct tinyml_depthwise_conv_s8 *p)
{
	const struct tinyml_play_depthwise_conv_s8 *record = play->record;

	memcpy(p, record, offsetof(struct tinyml_play_depthwise_conv_s8, weights));
	p->weights = (const void *)(play->image + record->weights);
	p->bias = (const void *)(play->image + record->bias);
	p->multiplier = (const void *)(play->image + record->multiplier);
	p->shift = (const void *)(play->image + record->shift);
}

void tinyml_play_depthwise_conv_s8(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_depthwise_conv_s8 *, const int8_t *, int8_t *,
			    void *, const void *);
	struct tinyml_depthwise_conv_s8 p;

	play_depthwise_fill(play, &p);
	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1],
					   play->operand[SCRATCH], play->kernel->loop);
}

/* Channels with outputs that are large for their sums take a loop of their own. Models that are
 * data have none: whatever their shifts are, that loop is the usual one. */
void tinyml_play_depthwise_nibbles_halves_s8(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_depthwise_conv_s8 *, const int8_t *, int8_t *,
			    void *, const void *, const void *);
	struct tinyml_depthwise_conv_s8 p;

	play_depthwise_fill(play, &p);
	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1],
					   play->operand[SCRATCH], play->kernel->loop,
					   play->kernel->loop);
}

void tinyml_play_depthwise_whole_s8(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_depthwise_conv_s8 *, const int8_t *, int8_t *);
	struct tinyml_depthwise_conv_s8 p;

	play_depthwise_fill(play, &p);
	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1]);
}

static uint32_t play_depthwise_plane(const struct tinyml_window *w)
{
	return tinyml_check_times(
		tinyml_check_reach(w->out_h, w->stride_h, w->kernel_h, w->dilation_h),
		tinyml_check_reach(w->out_w, w->stride_w, w->kernel_w, w->dilation_w));
}

/* How weights are stored. */
typedef enum {
	PLAY_BYTES,
	PLAY_SPARE_BYTES, /* which are read up to three bytes past their end */
	PLAY_HALF_BYTES,  /* four bits each, those of a channel by themselves */
} stored_as;

static uint32_t play_depthwise_weights(struct tinyml_check *check, stored_as stored, uint32_t taps,
				       uint32_t channels)
{
	if (stored == PLAY_HALF_BYTES) {
		tinyml_check_that(check, taps <= TINYML_NIBBLES);
		return tinyml_check_times(taps / 2u + taps % 2u, channels);
	}
	return tinyml_check_plus(tinyml_check_times(taps, channels),
				 stored == PLAY_SPARE_BYTES ? 3 : 0);
}

/* Input, output, and the tables that all have; returns the work: products, and a plane for each
 * channel. */
static uint32_t play_depthwise_check(struct tinyml_check *check, stored_as stored)
{
	const struct tinyml_play_depthwise_conv_s8 *r = check->record;
	const struct tinyml_window *const w = &r->window;
	const uint32_t outputs = tinyml_check_window_s8(check, w);
	uint32_t channels, taps;

	tinyml_check_that(check, r->round_once <= 1u && r->transposed <= 1u);
	if (check->wrong) {
		return 0;
	}
	tinyml_check_that(check, w->out_c % w->in_c == 0);
	channels = (uint32_t)w->out_c;
	taps = tinyml_check_taps(w);
	tinyml_check_constants(check, r->weights,
			       play_depthwise_weights(check, stored, taps, channels), 1);
	tinyml_check_constants(check, r->bias, 4u * channels, 4);
	tinyml_check_constants(check, r->multiplier, 4u * channels, 4);
	tinyml_check_constants(check, r->shift, channels, 1);
	return tinyml_check_plus(
		tinyml_check_times(outputs, tinyml_check_plus(taps, 1)),
		tinyml_check_times((uint32_t)w->batches * channels, play_depthwise_plane(w)));
}

/* A plane with `spare` bytes behind it, in whole words, and for each row of taps `taps` words. */
static uint32_t play_depthwise_planes(struct tinyml_check *check, stored_as stored, uint32_t spare,
				      bool spread)
{
	const struct tinyml_play_depthwise_conv_s8 *r = check->record;
	const struct tinyml_window *const w = &r->window;
	const uint32_t work = play_depthwise_check(check, stored);
	uint32_t bytes, row;

	if (check->wrong) {
		return 0;
	}
	bytes = tinyml_check_plus(play_depthwise_plane(w), spare);
	if (spare != 0u) {
		bytes = tinyml_check_times(tinyml_check_words(bytes), 4);
	}
	if (spread) {
		row = tinyml_check_words((uint32_t)(w->kernel_w - 1) * (uint32_t)w->dilation_w +
					 1u);
		bytes = tinyml_check_plus(bytes,
					  tinyml_check_times(8u * row, (uint32_t)w->kernel_h));
	}
	tinyml_check_writes(check, SCRATCH, bytes, spare != 0u ? 4 : 1);
	return work;
}

/* Taps are neighbours, and are what is multiplied. */
static bool play_depthwise_plain(const struct tinyml_play_depthwise_conv_s8 *r)
{
	const struct tinyml_window *const w = &r->window;

	return (w->dilation_h == 1 || w->kernel_h == 1) &&
	       (w->dilation_w == 1 || w->kernel_w == 1) && r->weight_zero == 0;
}

static bool play_depthwise_is_3x3(const struct tinyml_play_depthwise_conv_s8 *r)
{
	return r->window.kernel_h == 3 && r->window.kernel_w == 3 && play_depthwise_plain(r);
}

static uint32_t play_depthwise_any(struct tinyml_check *check, stored_as stored)
{
	return play_depthwise_planes(check, stored, 0, false);
}

static uint32_t play_depthwise_3x3(struct tinyml_check *check, stored_as stored)
{
	const struct tinyml_play_depthwise_conv_s8 *r = check->record;

	tinyml_check_that(check, play_depthwise_is_3x3(r) && r->window.out_w > 1);
	return play_depthwise_planes(check, stored, 0, false);
}

static uint32_t play_depthwise_dsp_any(struct tinyml_check *check, stored_as stored)
{
	return play_depthwise_planes(check, stored, 3, true);
}

static uint32_t play_depthwise_dsp_two_words(struct tinyml_check *check, stored_as stored)
{
	const struct tinyml_play_depthwise_conv_s8 *r = check->record;
	const int32_t span = (r->window.kernel_w - 1) * r->window.dilation_w + 1;

	tinyml_check_that(check, span >= 5 && span <= 7);
	return play_depthwise_planes(check, stored, 3, true);
}

static uint32_t play_depthwise_dsp_3x3(struct tinyml_check *check, stored_as stored)
{
	tinyml_check_that(check, play_depthwise_is_3x3(check->record));
	return play_depthwise_planes(check, stored, 3, false);
}

/* Nine taps: a 3x3 kernel, or a single row of up to nine, read up to six bytes past the plane. */
static uint32_t play_depthwise_nine(struct tinyml_check *check, stored_as stored, int32_t stride)
{
	const struct tinyml_play_depthwise_conv_s8 *r = check->record;
	const struct tinyml_window *const w = &r->window;
	const bool one_row = w->kernel_h == 1;

	tinyml_check_that(check, (play_depthwise_is_3x3(r) ||
				  (one_row && w->kernel_w <= 9 && play_depthwise_plain(r))) &&
					 w->stride_w == stride && w->out_w > 1);
	return play_depthwise_planes(check, stored, one_row ? 6 : 3, false);
}

static uint32_t play_depthwise_dsp_3x3_by_1(struct tinyml_check *check, stored_as stored)
{
	return play_depthwise_nine(check, stored, 1);
}

static uint32_t play_depthwise_dsp_3x3_by_2(struct tinyml_check *check, stored_as stored)
{
	return play_depthwise_nine(check, stored, 2);
}

/* A word for each element that windows of the upper half reach, and for each tap. */
static uint32_t play_depthwise_words(struct tinyml_check *check, stored_as stored, bool nine)
{
	const struct tinyml_play_depthwise_conv_s8 *r = check->record;
	const struct tinyml_window *const w = &r->window;
	const uint32_t work = play_depthwise_check(check, stored);
	uint32_t height, width, rows, taps, words;

	tinyml_check_that(check, play_depthwise_plain(r) && (w->out_h > 1 || w->out_w > 1));
	if (check->wrong) {
		return 0;
	}
	height = tinyml_check_reach((w->out_h + 1) / 2, w->stride_h, w->kernel_h, 1);
	width = tinyml_check_reach(w->out_w, w->stride_w, w->kernel_w, 1);
	words = tinyml_check_times(height, width);
	tinyml_check_that(check, (uint32_t)w->pad_left < width);
	if (nine) {
		tinyml_check_that(check, play_depthwise_is_3x3(r));
	} else {
		rows = width == 1u ? 1u : (uint32_t)w->kernel_h;
		taps = (uint32_t)(width == 1u ? w->kernel_h : w->kernel_w);
		words = tinyml_check_plus(words, tinyml_check_times(rows, taps + taps % 2u));
	}
	tinyml_check_writes(check, SCRATCH, tinyml_check_times(words, 4), 4);
	return work;
}

static uint32_t play_depthwise_halves(struct tinyml_check *check, stored_as stored)
{
	return play_depthwise_words(check, stored, false);
}

static uint32_t play_depthwise_halves_3x3(struct tinyml_check *check, stored_as stored)
{
	return play_depthwise_words(check, stored, true);
}

/* The rules of a loop over bytes, and of the same loop over weights of four bits. */
#define RULES(name, stored)                                                                        \
	uint32_t tinyml_check_depthwise_##name##_s8(struct tinyml_check *check)                    \
	{                                                                                          \
		return play_depthwise_##name(check, stored);                                       \
	}                                                                                          \
	uint32_t tinyml_check_nibbles_##name##_s8(struct tinyml_check *check)                      \
	{                                                                                          \
		return play_depthwise_##name(check, PLAY_HALF_BYTES);                              \
	}

RULES(any, PLAY_BYTES)
RULES(3x3, PLAY_BYTES)
RULES(halves, PLAY_BYTES)
RULES(halves_3x3, PLAY_BYTES)
RULES(dsp_any, PLAY_SPARE_BYTES)
RULES(dsp_two_words, PLAY_SPARE_BYTES)
RULES(dsp_3x3, PLAY_SPARE_BYTES)
RULES(dsp_3x3_by_1, PLAY_SPARE_BYTES)
RULES(dsp_3x3_by_2, PLAY_SPARE_BYTES)

uint32_t tinyml_check_depthwise_whole_s8(struct tinyml_check *check)
{
	const struct tinyml_play_depthwise_conv_s8 *r = check->record;
	const struct tinyml_window *const w = &r->window;

	tinyml_check_that(check, w->in_c == w->out_c && w->out_h == 1 && w->out_w == 1 &&
					 w->kernel_h == w->in_h && w->kernel_w == w->in_w &&
					 w->pad_top == 0 && w->pad_left == 0 &&
					 (w->dilation_h == 1 || w->kernel_h == 1) &&
					 (w->dilation_w == 1 || w->kernel_w == 1));
	return play_depthwise_check(check, PLAY_BYTES);
}
