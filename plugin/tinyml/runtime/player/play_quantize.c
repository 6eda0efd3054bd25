/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Between real numbers and bytes. */

#include <tinyml/play_records.h>
#include <tinyml/quantize.h>

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
