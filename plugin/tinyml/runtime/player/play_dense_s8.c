/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Dense layers over a stream of filters: <tinyml/dense.h> states its length. */

#include <stddef.h>

#include <tinyml/dense.h>
#include <tinyml/play_records.h>

#include "window.h"

void tinyml_play_dense_stream_s8(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_dense_stream_s8 *, const int8_t *, int8_t *);
	const struct tinyml_play_dense_stream_s8 *record = play->record;
	const struct tinyml_dense_stream_s8 p = {
		.rows = record->rows,
		.inputs = record->inputs,
		.outputs = record->outputs,
		.filters = (const void *)(play->image + record->filters),
		.weight_zero = record->weight_zero,
		.out_zero = record->out_zero,
		.out_min = record->out_min,
		.out_max = record->out_max,
		.round_once = record->round_once != 0u,
	};

	((kernel *)play->kernel->function)(&p, play->operand[0], play->operand[1]);
}

/* Words of so many filters together, each of `words`: with four words of constants if there are
 * four, and so on. */
static uint32_t play_dense_tile(uint32_t filters, uint32_t words, uint32_t constants)
{
	return tinyml_check_plus(tinyml_check_times(filters, words), constants);
}

static uint32_t play_dense_check(struct tinyml_check *check, uint32_t stream_words)
{
	const struct tinyml_play_dense_stream_s8 *r = check->record;
	const uint32_t inputs = tinyml_check_times((uint32_t)r->rows, (uint32_t)r->inputs);
	const uint32_t outputs = tinyml_check_times((uint32_t)r->rows, (uint32_t)r->outputs);

	tinyml_check_that(check, r->rows > 0 && r->inputs > 0 && r->outputs > 0 &&
					 r->out_min <= r->out_max);
	tinyml_check_reads(check, 0, inputs, 1);
	tinyml_check_writes(check, 1, outputs, 1);
	tinyml_check_constants(check, r->filters, tinyml_check_times(stream_words, 4), 4);
	return tinyml_check_times(outputs, tinyml_check_plus((uint32_t)r->inputs, 1));
}

uint32_t tinyml_check_dense_s8(struct tinyml_check *check)
{
	const struct tinyml_play_dense_stream_s8 *r = check->record;
	const uint32_t words = tinyml_check_words((uint32_t)r->inputs);
	const uint32_t outputs = (uint32_t)r->outputs;
	const uint32_t fours = tinyml_check_times(outputs / 4u, play_dense_tile(4, words, 9));
	const uint32_t ones = tinyml_check_times(outputs % 4u, play_dense_tile(1, words, 3));

	return play_dense_check(check, tinyml_check_plus(fours, ones));
}

static uint32_t play_dense_pairs(uint32_t outputs, uint32_t words)
{
	const uint32_t left = outputs % 4u;
	const uint32_t fours = outputs / 4u + (left == 3u ? 1u : 0u);

	return tinyml_check_plus(tinyml_check_times(fours, play_dense_tile(4, words, 9)),
				 left == 1u || left == 2u ? play_dense_tile(2, words, 5) : 0u);
}

uint32_t tinyml_check_dense_pairs_s8(struct tinyml_check *check)
{
	const struct tinyml_play_dense_stream_s8 *r = check->record;

	tinyml_check_that(check, r->weight_zero == 0);
	return play_dense_check(check, play_dense_pairs((uint32_t)r->outputs,
							tinyml_check_words((uint32_t)r->inputs)));
}

uint32_t tinyml_check_dense_sixes_s8(struct tinyml_check *check)
{
	const struct tinyml_play_dense_stream_s8 *r = check->record;
	const uint32_t outputs = (uint32_t)r->outputs, words = (uint32_t)r->inputs / 4u;
	uint32_t left = outputs % 6u, sixes;

	tinyml_check_that(check, r->weight_zero == 0 && r->rows == 1 && r->inputs > 0 &&
					 r->inputs % 4 == 0 && r->outputs > 8);
	if (check->wrong) {
		return 0;
	}
	left += left == 1u || left == 2u ? 6u : 0u;
	sixes = tinyml_check_times((outputs - left) / 6u, play_dense_tile(6, words, 14));
	return play_dense_check(check, tinyml_check_plus(sixes, play_dense_pairs(left, words)));
}

/* Weights of four bits, in so many filters together with `constants` words. */
static uint32_t play_dense_nibbles(struct tinyml_check *check, uint32_t together,
				   uint32_t constants)
{
	const struct tinyml_play_dense_stream_s8 *r = check->record;
	const uint32_t words = tinyml_check_words((uint32_t)r->inputs);
	const uint32_t outputs = (uint32_t)r->outputs;
	const uint32_t tiles = outputs / together + (outputs % together != 0u ? 1u : 0u);

	return play_dense_check(
		check, tinyml_check_times(tiles, play_dense_tile(together / 2u, words, constants)));
}

uint32_t tinyml_check_dense_nibbles_s8(struct tinyml_check *check)
{
	return play_dense_nibbles(check, 4, 9);
}

uint32_t tinyml_check_dense_nibbles_dsp_s8(struct tinyml_check *check)
{
	return play_dense_nibbles(check, 8, 18);
}
