/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Between real numbers and bytes, or int16. */

#include <stddef.h>

#include <tinyml/play_records.h>
#include <tinyml/quantize.h>
#include <tinyml/quantize_f32.h>

void tinyml_play_quantize_bytes(const struct tinyml_play *play)
{
	const struct tinyml_play_quantize r = *(const struct tinyml_play_quantize *)play->record;
	const float *x = play->operand[0];
	const float *const end = x + r.count;
	uint8_t *y = play->operand[1];

	if (r.to_even != 0u) {
		while (x < end) {
			*y++ = (uint8_t)tinyml_quantize_even(*x++, r.scale, r.zero, r.out_min,
							     r.out_max);
		}
		return;
	}
	while (x < end) {
		*y++ = (uint8_t)tinyml_quantize_away(*x++, r.scale, r.zero, r.out_min, r.out_max);
	}
}

uint32_t tinyml_check_quantize_bytes(struct tinyml_check *check)
{
	const struct tinyml_play_quantize *r = check->record;

	tinyml_check_reads(check, 0, tinyml_check_times(r->count, 4), 4);
	tinyml_check_writes(check, 1, r->count, 1);
	return tinyml_check_times(r->count, 16);
}

_Static_assert(sizeof(struct tinyml_play_quantize_floats) == sizeof(struct tinyml_quantize_f32) &&
		       offsetof(struct tinyml_play_quantize_floats, scale) ==
			       offsetof(struct tinyml_quantize_f32, scale),
	       "records mirror structures");

void tinyml_play_quantize_floats_s8(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_quantize_f32 *, const float *, int8_t *);

	((kernel *)play->kernel->function)(play->record, play->operand[0], play->operand[1]);
}

void tinyml_play_quantize_floats_s16(const struct tinyml_play *play)
{
	typedef void kernel(const struct tinyml_quantize_f32 *, const float *, int16_t *);

	((kernel *)play->kernel->function)(play->record, play->operand[0], play->operand[1]);
}

static uint32_t play_quantize_floats_check(struct tinyml_check *check, uint32_t size)
{
	const struct tinyml_play_quantize_floats *r = check->record;
	const uint32_t bytes = tinyml_check_times((uint32_t)r->count, 4);

	tinyml_check_that(check, r->count > 0 && r->count % 4 == 0 && r->scale >= 0x1p-60f &&
					 r->scale <= 0x1p60f && r->zero >= INT16_MIN &&
					 r->zero <= INT16_MAX);
	tinyml_check_reads(check, 0, bytes, 4);
	tinyml_check_writes(check, 1, size == 1u ? (uint32_t)r->count : bytes / 2u, size);
	return bytes;
}

uint32_t tinyml_check_quantize_floats_s8(struct tinyml_check *check)
{
	return play_quantize_floats_check(check, 1);
}

uint32_t tinyml_check_quantize_floats_s16(struct tinyml_check *check)
{
	return play_quantize_floats_check(check, 2);
}

void tinyml_play_dequantize_s8(const struct tinyml_play *play)
{
	const struct tinyml_play_dequantize r =
		*(const struct tinyml_play_dequantize *)play->record;
	const int8_t *x = play->operand[0];
	float *y = play->operand[1];

	for (uint32_t left = r.count; left > 0u; left--) {
		*y++ = r.scale * (float)(*x++ - r.zero);
	}
}

void tinyml_play_dequantize_u8(const struct tinyml_play *play)
{
	const struct tinyml_play_dequantize r =
		*(const struct tinyml_play_dequantize *)play->record;
	const uint8_t *x = play->operand[0];
	float *y = play->operand[1];

	for (uint32_t left = r.count; left > 0u; left--) {
		*y++ = r.scale * (float)(*x++ - r.zero);
	}
}

uint32_t tinyml_check_dequantize_bytes(struct tinyml_check *check)
{
	const struct tinyml_play_dequantize *r = check->record;

	tinyml_check_that(check, r->zero >= -32768 && r->zero <= 32767);
	tinyml_check_reads(check, 0, r->count, 1);
	tinyml_check_writes(check, 1, tinyml_check_times(r->count, 4), 4);
	return tinyml_check_times(r->count, 4);
}
