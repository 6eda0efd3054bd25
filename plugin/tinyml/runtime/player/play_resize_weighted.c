/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Resizing by weighted sums of neighbours: tables have the places and the weights of each axis. */

#include <tinyml/play_records.h>

#include "nest.h"

/* The neighbours of an output along one axis. */
struct play_resize_taps {
	const uint16_t *places; /* the check has seen that all are inside */
	const float *factors;
	uint32_t count;
	uint32_t step;
};

/* An axis that stays has one neighbour, which is the output's own place. */
static struct play_resize_taps play_resize_weighted_taps(const struct tinyml_play *play,
							 uint32_t axis, uint32_t at, uint16_t *own)
{
	static const float one = 1.0f;
	const struct tinyml_play_resize_axis *const a =
		&((const struct tinyml_play_resize_weighted *)play->record)->axes[axis];
	const uint16_t *const places = tinyml_play_table(play, a->places);
	const float *const factors = tinyml_play_table(play, a->factors);

	*own = (uint16_t)at;
	if (places == NULL) {
		return (struct play_resize_taps){own, &one, 1, a->step};
	}
	return (struct play_resize_taps){&places[at * a->taps], &factors[at * a->taps], a->taps,
					 a->step};
}

static float play_resize_weighted_sum(const struct play_resize_taps taps[TINYML_PLAY_LOOPS],
				      const float *x)
{
	float sum = 0.0f;

	for (uint32_t i = 0; i < taps[0].count; i++) {
		const float *const x0 = &x[taps[0].places[i] * taps[0].step];
		const float f0 = taps[0].factors[i];

		for (uint32_t j = 0; j < taps[1].count; j++) {
			const float *const x1 = &x0[taps[1].places[j] * taps[1].step];
			const float f1 = f0 * taps[1].factors[j];

			for (uint32_t k = 0; k < taps[2].count; k++) {
				const float *const x2 = &x1[taps[2].places[k] * taps[2].step];
				const float f2 = f1 * taps[2].factors[k];

				for (uint32_t l = 0; l < taps[3].count; l++) {
					sum += x2[taps[3].places[l] * taps[3].step] * f2 *
					       taps[3].factors[l];
				}
			}
		}
	}
	return sum;
}

void tinyml_play_resize_weighted(const struct tinyml_play *play)
{
	const struct tinyml_play_resize_weighted *r = play->record;
	uint32_t extents[TINYML_PLAY_LOOPS], turn[TINYML_PLAY_LOOPS] = {0}, at = 0;
	int32_t steps[TINYML_PLAY_LOOPS];
	float *const y = play->operand[1];

	for (uint32_t i = 0; i < TINYML_PLAY_LOOPS; i++) {
		extents[i] = r->axes[i].out;
		steps[i] = (int32_t)r->axes[i].out_step;
	}
	do {
		struct play_resize_taps taps[TINYML_PLAY_LOOPS];
		uint16_t own[TINYML_PLAY_LOOPS];
		bool outside = false;

		for (uint32_t i = 0; i < TINYML_PLAY_LOOPS; i++) {
			const uint8_t *const flags = tinyml_play_table(play, r->axes[i].outside);

			taps[i] = play_resize_weighted_taps(play, i, turn[i], &own[i]);
			outside = outside || (flags != NULL && flags[turn[i]] != 0u);
		}
		y[at] = outside ? r->extrapolation
				: play_resize_weighted_sum(taps, play->operand[0]);
		at = tinyml_play_next(turn, extents, steps, at);
	} while ((turn[0] | turn[1] | turn[2] | turn[3]) != 0u);
}

/* Places are inside; returns the neighbours of an output. */
static uint32_t play_resize_weighted_axis(struct tinyml_check *check,
					  const struct tinyml_play_resize_axis *a)
{
	const uint32_t count = tinyml_check_times(a->out, a->taps);
	const uint16_t *places;

	tinyml_check_that(check, a->in > 0u && a->in <= INT16_MAX && a->out > 0u &&
					 a->out <= INT16_MAX && a->taps > 0u);
	if (a->outside != 0u) {
		tinyml_check_constants(check, a->outside, a->out, 1);
	}
	if (a->places == 0u) {
		tinyml_check_that(check, a->out <= a->in);
		return 1;
	}
	tinyml_check_that(check, a->factors != 0u);
	tinyml_check_constants(check, a->places, tinyml_check_times(count, 2), 2);
	tinyml_check_constants(check, a->factors, tinyml_check_times(count, 4), 4);
	if (check->wrong) {
		return 0;
	}
	places = (const void *)(check->image + a->places);
	for (uint32_t i = 0; i < count; i++) {
		tinyml_check_that(check, places[i] < a->in);
	}
	return a->taps;
}

uint32_t tinyml_check_resize_weighted(struct tinyml_check *check)
{
	const struct tinyml_play_resize_weighted *r = check->record;
	uint32_t reach = 1, end = 1, outputs = 1, taps = 1;

	for (uint32_t i = 0; i < TINYML_PLAY_LOOPS && !check->wrong; i++) {
		const struct tinyml_play_resize_axis *const a = &r->axes[i];

		taps = tinyml_check_times(taps, play_resize_weighted_axis(check, a));
		outputs = tinyml_check_times(outputs, a->out);
		reach = tinyml_check_plus(reach, tinyml_check_times(a->in - 1u, a->step));
		end = tinyml_check_plus(end, tinyml_check_times(a->out - 1u, a->out_step));
	}
	tinyml_check_reads(check, 0, tinyml_check_times(reach, 4), 4);
	tinyml_check_writes(check, 1, tinyml_check_times(end, 4), 4);
	return tinyml_check_times(outputs, tinyml_check_plus(tinyml_check_times(taps, 4), 32));
}
