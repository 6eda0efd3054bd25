/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* From one type of elements to another. */

#include <tinyml/play_records.h>
#include <tinyml/scalar.h>

#include "types.h"

void tinyml_play_cast_integers(const struct tinyml_play *play)
{
	const struct tinyml_play_cast r = *(const struct tinyml_play_cast *)play->record;
	const uint32_t from_bytes = tinyml_play_type_bytes(r.from);
	const uint32_t to_bytes = tinyml_play_type_bytes(r.to);
	const uint8_t *from = play->operand[0];
	uint8_t *to = play->operand[1];

	for (uint32_t left = r.count; left > 0u; left--, from += from_bytes, to += to_bytes) {
		const int64_t value = tinyml_play_load(from, r.from);

		tinyml_play_store(to, r.to, r.to == TINYML_BOOL ? value != 0 : value);
	}
}

void tinyml_play_cast_to_f32(const struct tinyml_play *play)
{
	const struct tinyml_play_cast r = *(const struct tinyml_play_cast *)play->record;
	const uint32_t from_bytes = tinyml_play_type_bytes(r.from);
	const uint8_t *from = play->operand[0];
	float *to = play->operand[1];

	for (uint32_t left = r.count; left > 0u; left--, from += from_bytes) {
		if (r.from == TINYML_INT32) {
			*to++ = (float)*(const int32_t *)(const void *)from;
		} else {
			*to++ = (float)tinyml_play_load(from, r.from);
		}
	}
}

/* Truncated towards zero; what does not fit becomes the nearest that does. */
static int64_t play_cast_whole(float value, uint32_t type)
{
	switch (type) {
	case TINYML_BOOL:
		return value != 0.0f;
	case TINYML_INT8:
		return tinyml_int8_from_float(value);
	case TINYML_UINT8:
		return tinyml_uint8_from_float(value);
	case TINYML_INT16:
		return tinyml_int16_from_float(value);
	case TINYML_UINT16:
		return tinyml_uint16_from_float(value);
	case TINYML_INT32:
		return tinyml_int32_from_float(value);
	case TINYML_UINT32:
		return tinyml_uint32_from_float(value);
	default:
		return tinyml_int64_from_float(value);
	}
}

void tinyml_play_cast_from_f32(const struct tinyml_play *play)
{
	const struct tinyml_play_cast r = *(const struct tinyml_play_cast *)play->record;
	const uint32_t to_bytes = tinyml_play_type_bytes(r.to);
	const float *from = play->operand[0];
	uint8_t *to = play->operand[1];

	for (uint32_t left = r.count; left > 0u; left--, to += to_bytes) {
		tinyml_play_store(to, r.to, play_cast_whole(*from++, r.to));
	}
}

static uint32_t play_cast_check(struct tinyml_check *check, bool from, bool to)
{
	const struct tinyml_play_cast *r = check->record;
	uint32_t size;

	tinyml_check_that(check, from ? tinyml_play_is_integer(r->from) : r->from == 0u);
	tinyml_check_that(check, to ? tinyml_play_is_integer(r->to) : r->to == 0u);
	if (check->wrong) {
		return 0;
	}
	size = tinyml_play_type_bytes(r->from);
	tinyml_check_reads(check, 0, tinyml_check_times(r->count, size), size);
	size = tinyml_play_type_bytes(r->to);
	tinyml_check_writes(check, 1, tinyml_check_times(r->count, size), size);
	return tinyml_check_times(r->count, 16);
}

uint32_t tinyml_check_cast_integers(struct tinyml_check *check)
{
	return play_cast_check(check, true, true);
}

uint32_t tinyml_check_cast_to_f32(struct tinyml_check *check)
{
	return play_cast_check(check, true, false);
}

uint32_t tinyml_check_cast_from_f32(struct tinyml_check *check)
{
	return play_cast_check(check, false, true);
}
