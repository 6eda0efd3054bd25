/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Inputs that get the mean and the scale of the training, feature by feature: the first examples
 * say what this sensor's are. adapt/scaling.py does the same in every bit. */

#include "exact.h"

#include <string.h>

#include <tinyml/fixed_point.h>
#include <tinyml/maths_bits.h>

static float scaling_read(const struct tinyml_adapt_scaling *s, const void *x, uint32_t index)
{
	return s->is_float ? ((const float *)x)[index]
			   : (float)(((const int8_t *)x)[index] - s->zero_point) * s->scale;
}

static void scaling_write(const struct tinyml_adapt_scaling *s, void *y, uint32_t index,
			  float value)
{
	float steps;
	int32_t whole;

	if (s->is_float) {
		((float *)y)[index] = value;
		return;
	}
	steps = value / s->scale;
	steps = steps > -512.0f ? steps < 512.0f ? steps : 512.0f : -512.0f;
	whole = (int32_t)(steps < 0.0f ? steps - 0.5f : steps + 0.5f);
	((int8_t *)y)[index] = (int8_t)tinyml_clamp(whole + s->zero_point, INT8_MIN, INT8_MAX);
}

/* Mean and squares of a feature with those of this run. */
static void scaling_note(const struct tinyml_adapt_scaling *s, const void *x, uint32_t feature)
{
	const uint32_t before = *s->count * s->rows;
	float mean = s->learnt[feature];
	float squares = s->learnt[s->features + feature];

	for (uint32_t row = 0; row < s->rows; row++) {
		const float value = scaling_read(s, x, row * s->features + feature);
		const float away = value - mean;
		float rest;

		mean = mean + away / (float)(before + row + 1u);
		rest = value - mean;
		rest = away * rest;
		squares = squares + rest;
	}
	s->pending[feature] = mean;
	s->pending[s->features + feature] = squares;
}

static void scaling_apply(const struct tinyml_adapt_scaling *s, const void *x, void *y,
			  uint32_t feature)
{
	const float mean = s->learnt[feature];
	const float values = (float)(s->least * s->rows - 1u);
	const float deviation = tinyml_sqrtf(s->learnt[s->features + feature] / values);
	const float wanted = s->reference[s->features + feature];
	float gain = deviation > 0.0f && wanted > 0.0f ? wanted / deviation : 1.0f;

	gain = gain < 0.0625f ? 0.0625f : gain > 16.0f ? 16.0f : gain;
	for (uint32_t row = 0; row < s->rows; row++) {
		const uint32_t index = row * s->features + feature;
		const float away = (scaling_read(s, x, index) - mean) * gain;

		scaling_write(s, y, index, away + s->reference[feature]);
	}
}

void tinyml_adapt_rescale(const struct tinyml_adapt_threshold *t, const void *x, void *y)
{
	const struct tinyml_adapt_scaling *const s = t->scaling;
	const bool learns = *s->count < s->least;

	for (uint32_t feature = 0; feature < s->features; feature++) {
		if (learns) {
			scaling_note(s, x, feature);
		} else {
			scaling_apply(s, x, y, feature);
		}
	}
	if (learns && x != y) {
		memcpy(y, x, (size_t)s->rows * s->features * (s->is_float ? 4u : 1u));
	}
}

static bool scaling_usual(const float *values, uint32_t count)
{
	bool usual = true;

	for (uint32_t i = 0; i < count; i++) {
		usual = usual && exact_is_usual(values[i]);
	}
	return usual;
}

int tinyml_adapt_learn_scaled(const struct tinyml_adapt *adapt, int32_t label, const float *targets)
{
	const struct tinyml_adapt_threshold *const t = (const struct tinyml_adapt_threshold *)adapt;
	const struct tinyml_adapt_scaling *const s = t->scaling;
	int status = 0;

	if (*s->count >= s->least) {
		status = tinyml_adapt_learn_normal(adapt, label, targets);
	} else if (adapt->run->ready == 0u) {
		return TINYML_ADAPT_ENORUN;
	} else if (!scaling_usual(s->pending, 2u * s->features)) {
		return TINYML_ADAPT_ELOSS;
	} else {
		memcpy(s->learnt, s->pending, 8u * s->features);
		(*s->count)++;
		adapt->run->ready = 0;
	}
	adapt->learnt->count = t->normal->count + *s->count;
	return status;
}

bool tinyml_adapt_valid_scaled(const struct tinyml_adapt *adapt, const void *values)
{
	const struct tinyml_adapt_threshold *const t = (const struct tinyml_adapt_threshold *)adapt;
	const uint8_t *from = (const uint8_t *)values + sizeof(struct tinyml_adapt_normal);
	uint32_t count;
	bool valid;

	memcpy(&count, from, sizeof(count));
	valid = tinyml_adapt_valid_threshold(adapt, values) && count <= t->scaling->least;
	for (uint32_t i = 0; i < 2u * t->scaling->features; i++) {
		float value;

		from += 4;
		memcpy(&value, from, sizeof(value));
		valid = valid && exact_is_usual(value) &&
			(i < t->scaling->features || value >= 0.0f);
	}
	return valid;
}
