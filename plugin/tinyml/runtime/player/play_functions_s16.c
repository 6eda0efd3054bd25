/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Functions of int16, element by element, and between int16 and other types. */

#include <tinyml/fixed_point.h>
#include <tinyml/quantize.h>
#include <tinyml/sigmoid_s16.h>

#include "nest.h"

#include "types.h"

void tinyml_play_leaky_s16(const struct tinyml_play *play)
{
	const struct tinyml_play_leaky_s16 *r = play->record;
	const int16_t *x = play->operand[0];
	int16_t *y = play->operand[1];

	for (uint32_t left = r->count; left > 0u; left--) {
		const int32_t v = *x++;
		const int32_t multiplier = v >= 0 ? r->multiplier : r->below_multiplier;
		const int32_t shift = v >= 0 ? r->shift : r->below_shift;
		const int32_t scaled = r->to_even != 0u
					       ? tinyml_rescale_to_even(v, multiplier, shift)
					       : tinyml_rescale(v, multiplier, shift);

		*y++ = (int16_t)tinyml_clamp(tinyml_play_plus(scaled, r->offset), r->out_min,
					     r->out_max);
	}
}

uint32_t tinyml_check_leaky_s16(struct tinyml_check *check)
{
	const struct tinyml_play_leaky_s16 *r = check->record;
	const uint32_t bytes = tinyml_check_times(r->count, 2);

	/* multipliers may be negative */
	tinyml_check_that(check, r->shift >= -31 && r->shift <= 30 && r->below_shift >= -31 &&
					 r->below_shift <= 30);
	tinyml_check_reads(check, 0, bytes, 2);
	tinyml_check_writes(check, 1, bytes, 2);
	return tinyml_check_times(r->count, 4);
}

/* In steps of 1 / 12288. */
static int32_t play_functions_s16_scaled(const struct tinyml_play_sigmoid_s16 *r, int32_t x)
{
	const int64_t half = r->shift != 0u ? INT64_C(1) << (r->shift - 1u) : 0;

	return (int32_t)(((int64_t)x * r->multiplier + half) >> r->shift);
}

void tinyml_play_sigmoid_s16(const struct tinyml_play *play)
{
	const struct tinyml_play_sigmoid_s16 *r = play->record;
	const uint16_t *const table = (const void *)(play->image + r->table);
	const int16_t *x = play->operand[0];
	int16_t *y = play->operand[1];

	for (uint32_t left = r->count; left > 0u; left--) {
		*y++ = tinyml_sigmoid_s16_by_table(play_functions_s16_scaled(r, *x++), table);
	}
}

void tinyml_play_tanh_s16(const struct tinyml_play *play)
{
	const struct tinyml_play_sigmoid_s16 *r = play->record;
	const uint16_t *const table = (const void *)(play->image + r->table);
	const int16_t *x = play->operand[0];
	int16_t *y = play->operand[1];

	for (uint32_t left = r->count; left > 0u; left--) {
		*y++ = tinyml_tanh_s16_by_table(play_functions_s16_scaled(r, *x++), table);
	}
}

/* Elements of two bytes, and a table. */
static uint32_t play_functions_s16_check(struct tinyml_check *check, uint32_t count, uint32_t table,
					 uint32_t values)
{
	const uint32_t bytes = tinyml_check_times(count, 2);

	tinyml_check_reads(check, 0, bytes, 2);
	tinyml_check_writes(check, 1, bytes, 2);
	tinyml_check_constants(check, table, 2u * values, 2);
	return tinyml_check_times(count, 8);
}

uint32_t tinyml_check_sigmoid_s16(struct tinyml_check *check)
{
	const struct tinyml_play_sigmoid_s16 *r = check->record;

	tinyml_check_that(check,
			  r->shift <= 31u && r->multiplier >= 0 && r->multiplier <= INT16_MAX);
	return play_functions_s16_check(check, r->count, r->table, 256);
}

/* A function as 513 values with straight lines between them. */
void tinyml_play_table_s16(const struct tinyml_play *play)
{
	const struct tinyml_play_lookup *r = play->record;
	const int16_t *const table = (const void *)(play->image + r->table);
	const int16_t *x = play->operand[0];
	int16_t *y = play->operand[1];

	for (uint32_t left = r->count; left > 0u; left--) {
		const int32_t v = *x++;
		const int16_t *const t = &table[(v >> 7) + 256];
		const int32_t rise = (t[1] - t[0]) * (v & 127);

		*y++ = (int16_t)(t[0] + ((rise + 64) >> 7));
	}
}

uint32_t tinyml_check_table_s16(struct tinyml_check *check)
{
	const struct tinyml_play_lookup *r = check->record;

	return play_functions_s16_check(check, r->count, r->table, 513);
}

void tinyml_play_quantize_s16(const struct tinyml_play *play)
{
	const struct tinyml_play_quantize r = *(const struct tinyml_play_quantize *)play->record;
	const float *x = play->operand[0];
	int16_t *y = play->operand[1];

	for (uint32_t left = r.count; left > 0u; left--) {
		const float v = *x++;

		*y++ = (int16_t)(r.to_even != 0u ? tinyml_quantize_even(v, r.scale, r.zero,
									r.out_min, r.out_max)
						 : tinyml_quantize_away(v, r.scale, r.zero,
									r.out_min, r.out_max));
	}
}

uint32_t tinyml_check_quantize_s16(struct tinyml_check *check)
{
	const struct tinyml_play_quantize *r = check->record;

	tinyml_check_reads(check, 0, tinyml_check_times(r->count, 4), 4);
	tinyml_check_writes(check, 1, tinyml_check_times(r->count, 2), 2);
	return tinyml_check_times(r->count, 16);
}

void tinyml_play_dequantize_s16(const struct tinyml_play *play)
{
	const struct tinyml_play_dequantize r =
		*(const struct tinyml_play_dequantize *)play->record;
	const int16_t *x = play->operand[0];
	float *y = play->operand[1];

	for (uint32_t left = r.count; left > 0u; left--) {
		*y++ = r.scale * (float)(*x++ - r.zero);
	}
}

uint32_t tinyml_check_dequantize_s16(struct tinyml_check *check)
{
	const struct tinyml_play_dequantize *r = check->record;

	tinyml_check_that(check, r->zero >= INT16_MIN && r->zero <= INT16_MAX);
	tinyml_check_reads(check, 0, tinyml_check_times(r->count, 2), 2);
	tinyml_check_writes(check, 1, tinyml_check_times(r->count, 4), 4);
	return tinyml_check_times(r->count, 4);
}

void tinyml_play_requantize(const struct tinyml_play *play)
{
	const struct tinyml_play_requantize *r = play->record;
	const uint32_t from = tinyml_play_type_bytes(r->from), to = tinyml_play_type_bytes(r->to);
	const int32_t low = r->to == TINYML_INT16 ? INT16_MIN : r->to == TINYML_INT8 ? INT8_MIN : 0;
	const int32_t high = r->to == TINYML_INT16  ? INT16_MAX
			     : r->to == TINYML_INT8 ? INT8_MAX
						    : UINT8_MAX;
	const uint8_t *x = play->operand[0];
	uint8_t *y = play->operand[1];

	for (uint32_t left = r->count; left > 0u; left--, x += from, y += to) {
		int32_t v = (int32_t)tinyml_play_load(x, r->from) - r->in_zero;

		if (r->multiplier != 0) {
			v = r->to_even != 0u ? tinyml_rescale_to_even(v, r->multiplier, r->shift)
					     : tinyml_rescale(v, r->multiplier, r->shift);
		}
		tinyml_play_store(y, r->to,
				  tinyml_clamp(tinyml_play_plus(v, r->out_zero), low, high));
	}
}

static bool play_functions_s16_type(uint32_t type)
{
	return type == TINYML_INT8 || type == TINYML_UINT8 || type == TINYML_INT16;
}

uint32_t tinyml_check_requantize(struct tinyml_check *check)
{
	const struct tinyml_play_requantize *r = check->record;
	uint32_t size;

	tinyml_check_that(check, play_functions_s16_type(r->from) &&
					 play_functions_s16_type(r->to) &&
					 tinyml_check_factor(r->multiplier, r->shift));
	if (check->wrong) {
		return 0;
	}
	size = tinyml_play_type_bytes(r->from);
	tinyml_check_reads(check, 0, tinyml_check_times(r->count, size), size);
	size = tinyml_play_type_bytes(r->to);
	tinyml_check_writes(check, 1, tinyml_check_times(r->count, size), size);
	return tinyml_check_times(r->count, 8);
}
