/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Layer, instance, group and RMS normalisation. */

#include <tinyml/maths.h>

#include "nest.h"

/* The inner loops; EACH is done with the elements `x[at]` and `y[at]`. */
#define ELEMENTS(r, EACH)                                                                          \
	do {                                                                                       \
		const uint32_t *const extents = (r)->inner_extents;                                \
		const int32_t *const steps = (r)->inner_steps;                                     \
		uint32_t at0 = 0;                                                                  \
                                                                                                   \
		for (uint32_t i = extents[0]; i > 0u; i--, at0 += (uint32_t)steps[0]) {            \
			uint32_t at1 = at0;                                                        \
                                                                                                   \
			for (uint32_t j = extents[1]; j > 0u; j--, at1 += (uint32_t)steps[1]) {    \
				uint32_t at2 = at1;                                                \
                                                                                                   \
				for (uint32_t k = extents[2]; k > 0u; k--) {                       \
					int32_t at = (int32_t)at2;                                 \
                                                                                                   \
					for (uint32_t l = extents[3]; l > 0u;                      \
					     l--, at += steps[3]) {                                \
						EACH;                                              \
					}                                                          \
					at2 += (uint32_t)steps[2];                                 \
				}                                                                  \
			}                                                                          \
		}                                                                                  \
	} while (0)

static void play_normalize_f32_one(const struct tinyml_play_normalize_f32 *r, const float *x,
				   float *y)
{
	float mean = 0.0f, squares = 0.0f, factor;

	if (r->centred != 0u) {
		ELEMENTS(r, mean += x[at]);
		mean /= r->count;
	}
	ELEMENTS(r, squares += (x[at] - mean) * (x[at] - mean));
	factor = 1.0f / tinyml_sqrtf(squares / r->count + r->epsilon);
	ELEMENTS(r, y[at] = (x[at] - mean) * factor);
}

void tinyml_play_normalize_f32(const struct tinyml_play *play)
{
	const struct tinyml_play_normalize_f32 *r = play->record;
	const float *const x = play->operand[0];
	float *const y = play->operand[1];
	uint32_t turn[TINYML_PLAY_LOOPS] = {0}, at = 0;

	do {
		play_normalize_f32_one(r, x + (int32_t)at, y + (int32_t)at);
		at = tinyml_play_next(turn, r->extents, r->steps, at);
	} while ((turn[0] | turn[1] | turn[2] | turn[3]) != 0u);
}

uint32_t tinyml_check_normalize_f32(struct tinyml_check *check)
{
	const struct tinyml_play_normalize_f32 *r = check->record;
	const uint32_t outer = tinyml_check_loops(check, r->extents);
	const uint32_t inner = tinyml_check_loops(check, r->inner_extents);
	uint32_t reach;

	if (check->wrong) {
		return 0;
	}
	reach = tinyml_check_plus(
			tinyml_check_elements(check, r->extents, r->steps, 1),
			tinyml_check_elements(check, r->inner_extents, r->inner_steps, 1)) -
		1u;
	tinyml_check_reads(check, 0, tinyml_check_times(reach, 4), 4);
	tinyml_check_writes(check, 1, tinyml_check_times(reach, 4), 4);
	return tinyml_check_times(outer, tinyml_check_plus(tinyml_check_times(inner, 16), 16));
}
