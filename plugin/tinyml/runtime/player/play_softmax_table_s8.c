/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Softmax with exponentials from a table. */

#include "nest.h"

/* One row. Exponentials are by how far an element is below the largest. */
static void play_softmax_table_row(const struct tinyml_play_softmax_table *r, const uint32_t *exps,
				   const int8_t *x, int8_t *y)
{
	const uint64_t numerator = (uint64_t)r->numerator_high << 32 | r->numerator;
	const uint64_t half = UINT64_C(1) << (r->shift - 1u);
	int32_t top = INT8_MIN;
	uint32_t sum = 0, factor;

	for (uint32_t i = 0; i < r->depth; i++) {
		const int32_t v = x[i * r->step];

		top = v > top ? v : top;
	}
	for (uint32_t i = 0; i < r->depth; i++) {
		const uint32_t below = (uint32_t)(top - x[i * r->step]);

		sum += below < r->size ? exps[below] : 0u;
	}
	sum = sum != 0u ? sum : 1u;
	factor = (uint32_t)((numerator + sum / 2u) / sum);
	for (uint32_t i = 0; i < r->depth; i++) {
		const uint32_t below = (uint32_t)(top - x[i * r->step]);
		const uint64_t product = (uint64_t)(below < r->size ? exps[below] : 0u) * factor;
		const int32_t q = tinyml_play_plus(
			(int32_t)(uint32_t)((product + half) >> r->shift), r->zero);

		y[i * r->step] = (int8_t)(q > r->out_max ? r->out_max : q);
	}
}

void tinyml_play_softmax_table_s8(const struct tinyml_play *play)
{
	const struct tinyml_play_softmax_table *r = play->record;
	const uint32_t *exps = (const void *)(play->image + r->exps);
	const int8_t *x = play->operand[0];
	int8_t *y = play->operand[1];

	for (uint32_t i = 0; i < r->rows; i++) {
		for (uint32_t j = 0; j < r->columns; j++) {
			play_softmax_table_row(r, exps, x + j, y + j);
		}
		x += r->row_step;
		y += r->row_step;
	}
}

uint32_t tinyml_check_softmax_table_s8(struct tinyml_check *check)
{
	const struct tinyml_play_softmax_table *r = check->record;
	uint32_t last, bytes;

	tinyml_check_that(check, r->rows > 0u && r->columns > 0u && r->depth > 0u && r->size > 0u &&
					 r->size <= 256u && r->shift >= 1u && r->shift <= 63u);
	if (check->wrong) {
		return 0;
	}
	last = tinyml_check_plus(tinyml_check_times(r->rows - 1u, r->row_step), r->columns);
	bytes = tinyml_check_plus(tinyml_check_times(r->depth - 1u, r->step), last);
	tinyml_check_reads(check, 0, bytes, 1);
	tinyml_check_writes(check, 1, bytes, 1);
	tinyml_check_constants(check, r->exps, 4u * r->size, 4);
	return tinyml_check_times(tinyml_check_times(r->rows, r->columns),
				  tinyml_check_plus(tinyml_check_times(r->depth, 16), 1));
}
