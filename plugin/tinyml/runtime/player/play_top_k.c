/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The largest or the smallest elements along an axis, the best first, and their places. */

#include <tinyml/play_records.h>

#include "types.h"

/* Insertion into a sorted list, which is the output itself. Numbers come before what is not one. */
#define ROW(name, kind)                                                                            \
	static bool play_top_k_before_##name(const struct tinyml_play_top_k *r, kind v, kind w)    \
	{                                                                                          \
		return (r->largest != 0u ? v > w : v < w) || (w != w && v == v);                   \
	}                                                                                          \
	static void play_top_k_##name(const struct tinyml_play_top_k *r, const kind *x,            \
				      kind *best, int64_t *place)                                  \
	{                                                                                          \
		uint32_t count = 0;                                                                \
                                                                                                   \
		for (uint32_t i = 0; i < r->depth; i++) {                                          \
			const kind v = x[i * r->step];                                             \
			uint32_t j = count;                                                        \
                                                                                                   \
			if (count == r->count) {                                                   \
				if (!play_top_k_before_##name(r, v,                                \
							      best[(count - 1u) * r->step])) {     \
					continue;                                                  \
				}                                                                  \
				j--;                                                               \
				count--;                                                           \
			}                                                                          \
			count++;                                                                   \
			for (; j > 0u && play_top_k_before_##name(r, v, best[(j - 1u) * r->step]); \
			     j--) {                                                                \
				best[j * r->step] = best[(j - 1u) * r->step];                      \
				place[j * r->step] = place[(j - 1u) * r->step];                    \
			}                                                                          \
			best[j * r->step] = v;                                                     \
			place[j * r->step] = i;                                                    \
		}                                                                                  \
	}

ROW(f32, float)
ROW(s8, int8_t)
ROW(s16, int16_t)
ROW(s32, int32_t)

void tinyml_play_top_k(const struct tinyml_play *play)
{
	const struct tinyml_play_top_k *r = play->record;
	const uint32_t size = tinyml_play_type_bytes(r->type);
	const uint8_t *x = play->operand[0];
	uint8_t *y = play->operand[1];
	int64_t *place = play->operand[2];

	for (uint32_t i = 0; i < r->rows; i++) {
		for (uint32_t j = 0; j < r->step; j++) {
			const void *const from = x + j * size;
			void *const to = y + j * size;

			if (r->type == TINYML_FLOAT32) {
				play_top_k_f32(r, from, to, place + j);
			} else if (r->type == TINYML_INT8) {
				play_top_k_s8(r, from, to, place + j);
			} else if (r->type == TINYML_INT16) {
				play_top_k_s16(r, from, to, place + j);
			} else {
				play_top_k_s32(r, from, to, place + j);
			}
		}
		x += r->depth * r->step * size;
		y += r->count * r->step * size;
		place += r->count * r->step;
	}
}

uint32_t tinyml_check_top_k(struct tinyml_check *check)
{
	const struct tinyml_play_top_k *r = check->record;
	const uint32_t size = tinyml_play_type_bytes(r->type);
	const uint32_t columns = tinyml_check_times(r->rows, r->step);
	const uint32_t inputs = tinyml_check_times(columns, r->depth);
	const uint32_t outputs = tinyml_check_times(columns, r->count);

	tinyml_check_that(check, r->rows > 0u && r->step > 0u && r->count > 0u &&
					 r->count <= r->depth &&
					 (r->type == TINYML_FLOAT32 || r->type == TINYML_INT8 ||
					  r->type == TINYML_INT16 || r->type == TINYML_INT32));
	tinyml_check_reads(check, 0, tinyml_check_times(inputs, size), size);
	tinyml_check_writes(check, 1, tinyml_check_times(outputs, size), size);
	tinyml_check_writes(check, 2, tinyml_check_times(outputs, 8), 8);
	return tinyml_check_times(inputs, tinyml_check_times(tinyml_check_plus(r->count, 1), 4));
}
