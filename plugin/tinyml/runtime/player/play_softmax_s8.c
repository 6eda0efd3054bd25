/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Softmax: its structure has no pointers, so records are this structure. */

#include <tinyml/play_records.h>
#include <tinyml/softmax.h>

#define SOFTMAX_MOST 4095 /* elements of a row, whose sum has 12 integer bits */

void tinyml_play_softmax_s8(const struct tinyml_play *play)
{
	tinyml_softmax_s8(play->record, play->operand[0], play->operand[1]);
}

uint32_t tinyml_check_softmax_s8(struct tinyml_check *check)
{
	const struct tinyml_softmax_s8 *r = check->record;
	const uint32_t count = tinyml_check_times((uint32_t)r->rows, (uint32_t)r->depth);

	tinyml_check_that(check, r->rows > 0 && r->depth > 0 && r->depth <= SOFTMAX_MOST &&
					 r->left_shift >= 0 && r->left_shift < 32 &&
					 r->least_difference <= 0);
	tinyml_check_reads(check, 0, count, 1);
	tinyml_check_writes(check, 1, count, 1);
	return tinyml_check_times(count, 16);
}
