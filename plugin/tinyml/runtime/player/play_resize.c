/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Bilinear resizing: tables have the neighbours and the fraction of each row and column. */

#include <tinyml/play_records.h>

#include "types.h"

#define ONE      (1 << 10) /* of fractions of integers */
#define HALF     (ONE * ONE / 2)
#define IN(r, i) (((const int16_t *)(const void *)(play->image + (r)))[i])

/* A neighbour; the check has seen that none is negative. */
static uint32_t play_resize_place(const struct tinyml_play *play, uint32_t table, uint32_t i)
{
	return ((const uint16_t *)(const void *)(play->image + table))[i];
}

/* The four elements around an output, and their weights. */
struct play_resize_corners {
	uint32_t left, right; /* in the rows above and below */
	uint32_t above, below;
	uint32_t row, column; /* of the output, for its fractions */
};

static float play_resize_real(const struct tinyml_play *play, const struct play_resize_corners *at)
{
	const struct tinyml_play_resize_bilinear *r = play->record;
	const float *const x = play->operand[0];
	const float down = ((const float *)(const void *)(play->image + r->rows_by))[at->row];
	const float right =
		((const float *)(const void *)(play->image + r->columns_by))[at->column];
	const float first =
		x[at->above + at->left] * (1.0f - down) + x[at->below + at->left] * down;
	const float second =
		x[at->above + at->right] * (1.0f - down) + x[at->below + at->right] * down;

	return first * (1.0f - right) + second * right;
}

static int64_t play_resize_whole(const struct tinyml_play *play,
				 const struct play_resize_corners *at)
{
	const struct tinyml_play_resize_bilinear *r = play->record;
	const uint8_t *const x = play->operand[0];
	const uint32_t size = tinyml_play_type_bytes(r->type);
	const int64_t down = IN(r->rows_by, at->row), right = IN(r->columns_by, at->column);
	const int64_t first =
		tinyml_play_load(x + (at->above + at->left) * size, r->type) * (ONE - down) +
		tinyml_play_load(x + (at->below + at->left) * size, r->type) * down;
	const int64_t second =
		tinyml_play_load(x + (at->above + at->right) * size, r->type) * (ONE - down) +
		tinyml_play_load(x + (at->below + at->right) * size, r->type) * down;
	const int64_t sum = first * (ONE - right) + second * right;

	return (sum > 0 ? sum + HALF : sum - HALF) / (ONE * ONE);
}

void tinyml_play_resize_bilinear(const struct tinyml_play *play)
{
	const struct tinyml_play_resize_bilinear *r = play->record;
	const uint32_t size = tinyml_play_type_bytes(r->type), line = r->in_w * r->channels;
	uint8_t *y = play->operand[1];
	struct play_resize_corners at;

	for (uint32_t n = 0; n < r->batches; n++) {
		for (at.row = 0; at.row < r->out_h; at.row++) {
			at.above = (n * r->in_h + play_resize_place(play, r->rows, 2u * at.row)) *
				   line;
			at.below =
				(n * r->in_h + play_resize_place(play, r->rows, 2u * at.row + 1u)) *
				line;
			for (at.column = 0; at.column < r->out_w; at.column++) {
				at.left = play_resize_place(play, r->columns, 2u * at.column) *
					  r->channels;
				at.right =
					play_resize_place(play, r->columns, 2u * at.column + 1u) *
					r->channels;
				for (uint32_t c = r->channels; c > 0u;
				     c--, at.left++, at.right++, y += size) {
					if (r->type == TINYML_FLOAT32) {
						*(float *)(void *)y = play_resize_real(play, &at);
					} else {
						tinyml_play_store(y, r->type,
								  play_resize_whole(play, &at));
					}
				}
			}
		}
	}
}

/* The neighbours of an axis are inside of it. */
static void play_resize_axis(struct tinyml_check *check, uint32_t places, uint32_t by, uint32_t out,
			     uint32_t in, uint32_t fraction)
{
	tinyml_check_that(check, in > 0u && in <= INT16_MAX && out > 0u && out <= INT16_MAX);
	tinyml_check_constants(check, places, tinyml_check_times(out, 4), 2);
	tinyml_check_constants(check, by, tinyml_check_times(out, fraction), fraction);
	for (uint32_t i = 0; !check->wrong && i < 2u * out; i++) {
		const int16_t place = ((const int16_t *)(const void *)(check->image + places))[i];

		tinyml_check_that(check, place >= 0 && (uint32_t)place < in);
	}
}

uint32_t tinyml_check_resize_bilinear(struct tinyml_check *check)
{
	const struct tinyml_play_resize_bilinear *r = check->record;
	const uint32_t size = tinyml_play_type_bytes(r->type);
	const uint32_t fraction = r->type == TINYML_FLOAT32 ? 4 : 2;
	const uint32_t pixels = tinyml_check_times(r->batches, r->channels);
	uint32_t inputs, outputs;

	tinyml_check_that(check, r->batches > 0u && r->channels > 0u &&
					 (r->type == TINYML_FLOAT32 || r->type == TINYML_INT8 ||
					  r->type == TINYML_INT16));
	play_resize_axis(check, r->rows, r->rows_by, r->out_h, r->in_h, fraction);
	play_resize_axis(check, r->columns, r->columns_by, r->out_w, r->in_w, fraction);
	if (check->wrong) {
		return 0;
	}
	inputs = tinyml_check_times(pixels, r->in_h * r->in_w);
	outputs = tinyml_check_times(pixels, r->out_h * r->out_w);
	tinyml_check_reads(check, 0, tinyml_check_times(inputs, size), size);
	tinyml_check_writes(check, 1, tinyml_check_times(outputs, size), size);
	return tinyml_check_times(outputs, 16);
}
