/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What scores are usual: their mean and variance, as examples come. adapt/threshold.py does the
 * same in every bit. */

#include "exact.h"

#include <string.h>

#include <tinyml/maths_bits.h>

static float threshold_real(const void *data, uint32_t index, bool is_float, float scale,
			    int32_t zero_point)
{
	if (is_float) {
		return ((const float *)data)[index];
	}
	return (float)(((const int8_t *)data)[index] - zero_point) * scale;
}

static float threshold_output(const struct tinyml_adapt_threshold *t, const void *y, uint32_t index)
{
	return threshold_real(y, index, t->is_float, t->scale, t->zero_point);
}

void tinyml_adapt_score(const struct tinyml_adapt_threshold *t, const void *y)
{
	*t->score = threshold_output(t, y, 0);
	t->adapt.run->ready = 1;
}

void tinyml_adapt_error(const struct tinyml_adapt_threshold *t, const void *y, const void *x)
{
	float sum = 0.0f;

	for (uint32_t i = 0; i < t->elements; i++) {
		const float input =
			threshold_real(x, i, t->in_is_float, t->in_scale, t->in_zero_point);
		const float difference = threshold_output(t, y, i) - input;
		const float square = difference * difference;

		sum = sum + square;
	}
	*t->score = sum / (float)t->elements;
	t->adapt.run->ready = 1;
}

int tinyml_adapt_learn_normal(const struct tinyml_adapt *adapt, int32_t label, const float *targets)
{
	const struct tinyml_adapt_threshold *const t = (const struct tinyml_adapt_threshold *)adapt;
	struct tinyml_adapt_normal *const normal = t->normal;
	const float score = *t->score;
	float before, after, moved;

	(void)label;
	(void)targets;
	if (adapt->run->ready == 0u) {
		return TINYML_ADAPT_ENORUN;
	}
	before = score - normal->mean;
	moved = normal->mean + before / (float)(normal->count + 1u);
	after = score - moved;
	after = normal->squares + before * after;
	if (!exact_is_usual(score) || !exact_is_usual(after)) {
		return TINYML_ADAPT_ELOSS;
	}
	if (normal->count == UINT32_MAX) {
		return TINYML_ADAPT_EFULL;
	}
	normal->mean = moved;
	normal->squares = after;
	normal->count++;
	adapt->learnt->count = normal->count;
	adapt->run->ready = 0;
	return 0;
}

int tinyml_adapt_unusual(const struct tinyml_adapt *adapt, float *sigmas)
{
	const struct tinyml_adapt_threshold *const t = (const struct tinyml_adapt_threshold *)adapt;
	const struct tinyml_adapt_normal *const normal = t->normal;
	float deviation, away;

	if (adapt->run->ready == 0u || normal->count < t->least || normal->count < 2u) {
		return TINYML_ADAPT_ENORUN;
	}
	deviation = tinyml_sqrtf(normal->squares / (float)(normal->count - 1u));
	away = *t->score - normal->mean;
	away = deviation > 0.0f ? away / deviation : away > 0.0f ? 1e30f : 0.0f;
	if (sigmas != NULL) {
		*sigmas = away;
	}
	return away <= t->sigmas ? 0 : 1; /* a score that is not a number is unusual */
}

bool tinyml_adapt_valid_threshold(const struct tinyml_adapt *adapt, const void *values)
{
	struct tinyml_adapt_normal normal;

	(void)adapt;
	memcpy(&normal, values, sizeof(normal));
	return exact_is_usual(normal.mean) && exact_is_usual(normal.squares) &&
	       normal.squares >= 0.0f;
}
