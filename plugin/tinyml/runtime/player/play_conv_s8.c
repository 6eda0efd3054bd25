/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions over a stream of filters: <tinyml/conv.h> states its length and the scratch memory.
 */

#include <stddef.h>
#include <string.h>

#include <tinyml/play_records.h>

#include "window.h"

#define SCRATCH 2 /* operand */

_Static_assert(offsetof(struct tinyml_play_conv_stream_s8, from_the_end) ==
		       offsetof(struct tinyml_conv_stream_s8, from_the_end),
	       "records mirror structures");

void tinyml_play_conv_stream_s8(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_conv_stream_s8 *, const int8_t *, int8_t *, void *);
	const struct tinyml_play_conv_stream_s8 *record = play->record;
	struct tinyml_conv_stream_s8 p;

	memcpy(&p, record, offsetof(struct tinyml_play_conv_stream_s8, filters));
	p.filters = (const void *)(play->image + record->filters);
	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1],
					   play->operand[SCRATCH]);
}

/* How the filters of a group are stored. */
enum play_stream {
	PLAY_ONES,        /* one by one */
	PLAY_TWOS,        /* in pairs */
	PLAY_FOURS,       /* in fours, the last one or two as a pair */
	PLAY_NIBBLES,     /* in fours, with four bits for each weight */
	PLAY_NIBBLE_ONES, /* one by one, with four bits for each weight */
};

static uint32_t play_conv_stream_words(enum play_stream stream, uint32_t filters, uint32_t words)
{
	const uint32_t two = tinyml_check_plus(tinyml_check_times(2, words), 5);
	const uint32_t four = tinyml_check_plus(tinyml_check_times(4, words), 9);

	if (stream == PLAY_NIBBLES) {
		return tinyml_check_times((filters + 3u) / 4u,
					  tinyml_check_plus(tinyml_check_times(2, words), 9));
	}
	if (stream == PLAY_NIBBLE_ONES) {
		words = words / 2u + words % 2u;
	}
	if (stream == PLAY_ONES || stream == PLAY_NIBBLE_ONES) {
		return tinyml_check_times(filters, tinyml_check_plus(words, 3));
	}
	if (stream == PLAY_TWOS) {
		return tinyml_check_times((filters + 1u) / 2u, two);
	}
	return tinyml_check_plus(
		tinyml_check_times(filters / 4u + (filters % 4u == 3u ? 1u : 0u), four),
		filters % 4u == 1u || filters % 4u == 2u ? two : 0u);
}

/* columns: of how many bytes for each element of a window; more: bytes behind them */
static uint32_t play_conv_check(struct tinyml_check *check, enum play_stream stream,
				uint32_t columns, uint32_t more)
{
	const struct tinyml_play_conv_stream_s8 *r = check->record;
	const struct tinyml_window *const w = &r->window;
	const uint32_t outputs = tinyml_check_window_s8(check, w);
	uint32_t channels, elements, words, stream_words, columns_bytes;

	tinyml_check_that(check, r->groups > 0 && w->in_c % r->groups == 0 &&
					 w->out_c % r->groups == 0 && r->round_once <= 1u &&
					 r->from_the_end <= 1u && r->out_min <= r->out_max);
	if (check->wrong) {
		return 0;
	}
	channels = (uint32_t)(w->in_c / r->groups);
	elements = tinyml_check_times(tinyml_check_taps(w), channels);
	words = tinyml_check_words(elements);
	stream_words = play_conv_stream_words(stream, (uint32_t)(w->out_c / r->groups), words);
	stream_words = tinyml_check_times(stream_words, (uint32_t)r->groups);
	tinyml_check_constants(check, r->filters, tinyml_check_times(stream_words, 4), 4);
	columns_bytes = tinyml_check_times(words, 4u * (columns + (channels % 4u != 0u ? 1u : 0u)));
	tinyml_check_writes(check, SCRATCH, tinyml_check_plus(columns_bytes, more), 4);
	return tinyml_check_times(outputs, tinyml_check_plus(elements, 1));
}

uint32_t tinyml_check_conv_s8(struct tinyml_check *check)
{
	return play_conv_check(check, PLAY_TWOS, 3, 0);
}

uint32_t tinyml_check_conv_wide_s8(struct tinyml_check *check)
{
	return play_conv_check(check, PLAY_TWOS, 4, 0);
}

uint32_t tinyml_check_conv_halves_s8(struct tinyml_check *check)
{
	return play_conv_check(check, PLAY_ONES, 8, 16);
}

uint32_t tinyml_check_conv_dsp_s8(struct tinyml_check *check)
{
	return play_conv_check(check, PLAY_TWOS, 4, 0);
}

uint32_t tinyml_check_conv_pairs_s8(struct tinyml_check *check)
{
	const struct tinyml_play_conv_stream_s8 *r = check->record;

	tinyml_check_that(check, r->weight_zero == 0);
	return play_conv_check(check, PLAY_FOURS, 4, 0);
}

uint32_t tinyml_check_conv_nibbles_s8(struct tinyml_check *check)
{
	return play_conv_check(check, PLAY_NIBBLES, 4, 0);
}

uint32_t tinyml_check_conv_nibbles_halves_s8(struct tinyml_check *check)
{
	return play_conv_check(check, PLAY_NIBBLE_ONES, 8, 16);
}
