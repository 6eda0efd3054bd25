/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Softmax of int16. */

#include <tinyml/play_records.h>
#include <tinyml/softmax.h>

#include "nest.h"

#define VALUES 513u /* of each table */

void tinyml_play_softmax_s16(const struct tinyml_play *play)
{
	const struct tinyml_play_softmax_s16 *record = play->record;
	const struct tinyml_softmax_s16 p = {
		.rows = record->rows,
		.depth = record->depth,
		.multiplier = record->multiplier,
		.shift = record->shift,
		.exp = (const void *)(play->image + record->exp),
		.reciprocal = (const void *)(play->image + record->reciprocal),
	};

	tinyml_softmax_s16(&p, play->operand[0], play->operand[1]);
}

uint32_t tinyml_check_softmax_s16(struct tinyml_check *check)
{
	const struct tinyml_play_softmax_s16 *r = check->record;
	const uint32_t count = tinyml_check_times((uint32_t)r->rows, (uint32_t)r->depth);
	const int16_t *const exps = (const void *)(check->image + r->exp);

	/* 32 bits hold a sum */
	tinyml_check_that(check, r->rows > 0 && r->depth > 0 && r->depth < 1 << 16 &&
					 tinyml_check_factor(r->multiplier, r->shift));
	tinyml_check_reads(check, 0, tinyml_check_times(count, 2), 2);
	tinyml_check_writes(check, 1, tinyml_check_times(count, 2), 2);
	tinyml_check_constants(check, r->exp, 2u * VALUES, 2);
	tinyml_check_constants(check, r->reciprocal, 2u * VALUES, 2);
	/* sums are not 0: the largest element adds what the last values are */
	for (uint32_t i = 0; !check->wrong && i < VALUES; i++) {
		tinyml_check_that(check, exps[i] >= (i + 2u < VALUES ? 0 : 1));
	}
	return tinyml_check_plus(tinyml_check_times(count, 16), VALUES);
}
