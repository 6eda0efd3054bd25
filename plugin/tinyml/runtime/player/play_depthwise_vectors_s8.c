/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Depthwise convolutions with Helium and with vectors of RISC-V: <tinyml/depthwise_conv.h>. */

#include <stddef.h>
#include <string.h>

#include <tinyml/depthwise_conv.h>
#include <tinyml/play_records.h>

#include "window.h"

#define SCRATCH 2 /* operand */
#define LANES   16u

_Static_assert(offsetof(struct tinyml_play_depthwise_conv_mve_s8, round_once) ==
		       offsetof(struct tinyml_depthwise_conv_mve_s8, round_once),
	       "records mirror structures");

void tinyml_play_depthwise_conv_mve_s8(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_depthwise_conv_mve_s8 *, const int8_t *, int8_t *,
			    void *);
	const struct tinyml_play_depthwise_conv_mve_s8 *record = play->record;
	struct tinyml_depthwise_conv_mve_s8 p;

	memcpy(&p, record, offsetof(struct tinyml_play_depthwise_conv_mve_s8, unused));
	p.weights = (const void *)(play->image + record->weights);
	p.bias = (const void *)(play->image + record->bias);
	p.multiplier = (const void *)(play->image + record->multiplier);
	p.shift = (const void *)(play->image + record->shift);
	p.loop = play->kernel->loop;
	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1],
					   play->operand[SCRATCH]);
}

/* Rows that the kernel spans, with their padding and spare bytes; or no memory, if all windows of
 * at least `least` channels are inside the input. Returns the work: products, and copied rows. */
static uint32_t play_depthwise_vectors_ring(struct tinyml_check *check,
					    const struct tinyml_window *w, uint32_t outputs,
					    uint32_t spare, int32_t least)
{
	const uint32_t rows = tinyml_check_reach(1, 1, w->kernel_h, w->dilation_h);
	const uint32_t given = (uint32_t)(w->pad_left + w->in_w);
	const uint32_t height =
		tinyml_check_reach(w->out_h, w->stride_h, w->kernel_h, w->dilation_h);
	const uint32_t width =
		tinyml_check_reach(w->out_w, w->stride_w, w->kernel_w, w->dilation_w);
	uint32_t row;

	tinyml_check_that(check, (uint32_t)w->pad_top <= rows); /* the ring has so many rows */
	if (tinyml_check_nothing(check, SCRATCH)) {
		tinyml_check_that(check, w->in_c >= least && w->pad_top == 0 && w->pad_left == 0 &&
						 width <= (uint32_t)w->in_w &&
						 height <= (uint32_t)w->in_h);
	}
	row = tinyml_check_times(width > given ? width : given, (uint32_t)w->in_c);
	if (!tinyml_check_nothing(check, SCRATCH)) {
		tinyml_check_writes(check, SCRATCH,
				    tinyml_check_plus(tinyml_check_times(rows, row), spare), 1);
	}
	return tinyml_check_plus(
		tinyml_check_times(outputs, tinyml_check_plus(tinyml_check_taps(w), 1)),
		tinyml_check_times(tinyml_check_times((uint32_t)w->batches, height), row));
}

static uint32_t play_depthwise_vectors_check(struct tinyml_check *check, bool once)
{
	const struct tinyml_play_depthwise_conv_mve_s8 *r = check->record;
	const struct tinyml_window *const w = &r->window;
	const uint32_t outputs = tinyml_check_window_s8(check, w);
	uint32_t taps, entries;

	tinyml_check_that(check, r->round_once == (once ? 1u : 0u) && w->in_c == w->out_c);
	if (check->wrong) {
		return 0;
	}
	taps = tinyml_check_taps(w);
	tinyml_check_that(check, taps <= TINYML_DEPTHWISE_MVE_TAPS);
	entries = ((uint32_t)w->in_c + LANES - 1u) / LANES * LANES;
	tinyml_check_constants(check, r->weights, tinyml_check_times(taps, entries), 1);
	tinyml_check_constants(check, r->bias, 4u * entries, 4);
	tinyml_check_constants(check, r->multiplier, 4u * entries, 4);
	tinyml_check_constants(check, r->shift, entries, 1);
	return play_depthwise_vectors_ring(check, w, outputs, LANES - 1u, (int32_t)LANES);
}

static void play_depthwise_vectors_3x3(struct tinyml_check *check)
{
	const struct tinyml_play_depthwise_conv_mve_s8 *r = check->record;

	tinyml_check_that(check, r->window.kernel_h == 3 && r->window.kernel_w == 3);
}

uint32_t tinyml_check_depthwise_mve_3x3_once_s8(struct tinyml_check *check)
{
	play_depthwise_vectors_3x3(check);
	return play_depthwise_vectors_check(check, true);
}

uint32_t tinyml_check_depthwise_mve_3x3_twice_s8(struct tinyml_check *check)
{
	play_depthwise_vectors_3x3(check);
	return play_depthwise_vectors_check(check, false);
}

uint32_t tinyml_check_depthwise_mve_any_once_s8(struct tinyml_check *check)
{
	return play_depthwise_vectors_check(check, true);
}

uint32_t tinyml_check_depthwise_mve_any_twice_s8(struct tinyml_check *check)
{
	return play_depthwise_vectors_check(check, false);
}

uint32_t tinyml_check_depthwise_conv_rvv_s8(struct tinyml_check *check)
{
	const struct tinyml_play_conv_rvv_s8 *r = check->record;
	const struct tinyml_window *const w = &r->window;
	const uint32_t outputs = tinyml_check_window_s8(check, w);
	uint32_t taps, channels;

	tinyml_check_that(check,
			  r->round_once <= 1u && r->from_the_end <= 1u && w->in_c == w->out_c);
	if (check->wrong) {
		return 0;
	}
	taps = tinyml_check_taps(w);
	channels = (uint32_t)w->out_c;
	tinyml_check_constants(check, r->weights, tinyml_check_times(taps, channels), 1);
	tinyml_check_constants(check, r->bias, 4u * channels, 4);
	tinyml_check_constants(check, r->multiplier, 4u * channels, 4);
	tinyml_check_constants(check, r->shift, channels, 1);
	return play_depthwise_vectors_ring(check, w, outputs, 0, 1);
}
