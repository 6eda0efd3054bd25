/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The last dense layer with what it has learnt, and a step of stochastic gradient descent. A step
 * is rare, the layer is small. adapt/last.py does the same in every bit. */

#include "exact.h"

#include <string.h>

#include <tinyml/fixed_point.h>

/* exp(x) for x <= 0; 0 below the smallest normal number. */
static float last_exp(float x)
{
	/* 1/6! to 1/2! */
	static const float factors[] = {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f};
	float power = 0.0f, rest, scale;
	int32_t whole;
	uint32_t bits;

	if (!(x > -87.0f)) {
		return 0.0f;
	}
	whole = (int32_t)(x * 1.44269502f - 0.5f);
	rest = x - (float)whole * 0.693359375f;
	rest = rest + (float)whole * 0.000212194442f;
	for (uint32_t i = 0; i < 5u; i++) {
		power = power * rest;
		power = power + factors[i];
	}
	power = power * rest;
	power = power * rest;
	power = power + rest;
	bits = (uint32_t)(whole + 127) << 23;
	memcpy(&scale, &bits, sizeof(scale));
	return (power + 1.0f) * scale;
}

/* The sum of the layer for one class, and what was learnt in addition. */
static int32_t last_sum(const struct tinyml_adapt_last *last, const int8_t *x, uint32_t class,
			float *learnt)
{
	const uint32_t features = last->features;
	const int8_t *const weights = &last->weights[class * features];
	const float *const values = &last->values[last->classes + class * features];
	int32_t sum = last->bias[class];
	float more = 0.0f;

	for (uint32_t i = 0; i < features; i++) {
		sum += weights[i] * x[i];
	}
	if (last->adapt.learnt->count != 0u) {
		more = last->values[class];
		for (uint32_t i = 0; i < features; i++) {
			const float product = values[i] * (float)(x[i] - last->in_zero);

			more = more + product;
		}
	}
	*learnt = more;
	return sum;
}

static float last_logit(const struct tinyml_adapt_last *last, const int8_t *x, uint32_t class)
{
	float more;
	const int32_t sum = last_sum(last, x, class, &more);

	return ((float)sum + more) * last->unit[class];
}

/* What was learnt in whole steps of the sum, so that nothing learnt changes nothing. */
static int32_t last_corrected(int32_t sum, float more, int32_t shift)
{
	const float bound = 1073741824.0f;
	const int32_t most = INT32_C(1) << (30 - (shift > 0 ? shift : 0));
	const float kept = more > bound ? bound : more < -bound ? -bound : more;
	const int32_t steps = (int32_t)(kept < 0.0f ? kept - 0.5f : kept + 0.5f);
	const int64_t total = (int64_t)sum + steps;

	return steps == 0 ? sum : total > most ? most : total < -most ? -most : (int32_t)total;
}

void tinyml_adapt_dense_s8(const struct tinyml_adapt_last *last, const int8_t *x, int8_t *y)
{
	struct tinyml_adapt_run *const run = last->adapt.run;
	const uint32_t at = run->count < last->batch ? run->count : last->batch - 1u;
	const bool room = run->count < last->batch;
	float *const logits = &last->logits[at * last->classes];

	for (uint32_t class = 0; class < last->classes; class++) {
		const int32_t shift = last->shift[class];
		const int32_t multiplier = last->multiplier[class];
		float more;
		const int32_t sum = last_sum(last, x, class, &more);
		const int32_t total = last_corrected(sum, more, shift);
		const int32_t scaled = last->round_once
					       ? tinyml_rescale_once(total, multiplier, shift)
					       : tinyml_rescale(total, multiplier, shift);

		y[class] =
			(int8_t)tinyml_clamp(scaled + last->out_zero, last->out_min, last->out_max);
		if (room) {
			logits[class] = ((float)sum + more) * last->unit[class];
		}
	}
	if (room) {
		memcpy(&last->embeddings[at * last->features], x, last->features);
	}
	run->ready = 1;
}

/* The gradient of one value over the examples, and the step of that value. */
static void last_move(const struct tinyml_adapt_last *last, uint32_t value, float gradient,
		      float limit)
{
	float moved = last->values[value];

	if (last->decay > 0.0f) {
		const float back = last->decay * moved;

		gradient = gradient + back;
	}
	if (last->velocity != NULL) {
		const float kept = last->momentum * last->velocity[value];

		gradient = kept + gradient;
		last->velocity[value] = gradient;
	}
	moved = moved - gradient;
	last->values[value] = moved > limit ? limit : moved < -limit ? -limit : moved;
}

/* A step with the errors of all examples, which are where their logits were. */
static void last_step(const struct tinyml_adapt_last *last, uint32_t examples)
{
	const uint32_t classes = last->classes, features = last->features;

	for (uint32_t class = 0; class < classes; class++) {
		float gradient = 0.0f;

		for (uint32_t n = 0; n < examples; n++) {
			const float error = last->logits[n * classes + class] / (float)examples;
			const float part = last->bias_rate[class] * error;

			gradient = gradient + part;
			last->logits[n * classes + class] = last->rate[class] * error;
		}
		last_move(last, class, gradient, last->bias_limit[class]);
		for (uint32_t i = 0; i < features; i++) {
			gradient = 0.0f;
			for (uint32_t n = 0; n < examples; n++) {
				const int32_t x = last->embeddings[n * features + i];
				const float part = last->logits[n * classes + class] *
						   (float)(x - last->in_zero);

				gradient = gradient + part;
			}
			last_move(last, classes + class * features + i, gradient,
				  last->limit[class]);
		}
	}
	last->adapt.learnt->count++;
	last->adapt.run->count = 0;
}

/* Logits become errors: probabilities less 1 for the label. */
static int last_errors(const struct tinyml_adapt_last *last, float *logits, uint32_t label)
{
	float best = logits[0], sum = 0.0f;

	for (uint32_t class = 0; class < last->classes; class++) {
		if (!exact_is_usual(logits[class])) {
			return TINYML_ADAPT_ELOSS;
		}
		best = logits[class] > best ? logits[class] : best;
	}
	if (last_exp(logits[label] - best) == 0.0f) {
		return TINYML_ADAPT_ELOSS;
	}
	for (uint32_t class = 0; class < last->classes; class++) {
		logits[class] = last_exp(logits[class] - best);
		sum = sum + logits[class];
	}
	for (uint32_t class = 0; class < last->classes; class++) {
		logits[class] = logits[class] / sum - (class == label ? 1.0f : 0.0f);
	}
	return 0;
}

static int last_differences(const struct tinyml_adapt_last *last, float *logits,
			    const float *targets)
{
	for (uint32_t i = 0; i < last->classes; i++) {
		if (!exact_is_usual(logits[i]) || !exact_is_usual(targets[i])) {
			return TINYML_ADAPT_ELOSS;
		}
	}
	for (uint32_t i = 0; i < last->classes; i++) {
		logits[i] = logits[i] - targets[i];
	}
	return 0;
}

int tinyml_adapt_learn_last(const struct tinyml_adapt *adapt, int32_t label, const float *targets)
{
	const struct tinyml_adapt_last *const last = (const struct tinyml_adapt_last *)adapt;
	struct tinyml_adapt_run *const run = adapt->run;
	float *const logits = &last->logits[run->count * (uint32_t)last->classes];
	int status;

	if (last->squared ? targets == NULL : label < 0 || label >= last->classes) {
		return TINYML_EINVAL;
	}
	if (run->count >= last->batch) {
		return TINYML_ADAPT_EFULL;
	}
	if (run->ready == 0u) {
		return TINYML_ADAPT_ENORUN;
	}
	status = last->squared ? last_differences(last, logits, targets)
			       : last_errors(last, logits, (uint32_t)label);
	if (status == 0) {
		run->ready = 0;
		run->count++;
		if (run->batch == 0u) {
			last_step(last, 1);
		}
	}
	return status;
}

int tinyml_adapt_batch(const struct tinyml_adapt *adapt, bool begins)
{
	struct tinyml_adapt_run *const run = adapt->run;

	if (!begins && (run->batch == 0u || run->count == 0u)) {
		return TINYML_ADAPT_ENORUN;
	}
	run->batch = begins ? 1u : 0u;
	run->ready = 0;
	if (begins) {
		run->count = 0;
	} else {
		last_step((const struct tinyml_adapt_last *)adapt, run->count);
	}
	return 0;
}

int tinyml_adapt_check(const struct tinyml_adapt *adapt)
{
	const struct tinyml_adapt_last *const last = (const struct tinyml_adapt_last *)adapt;
	const struct tinyml_adapt_holdout *const holdout = last->holdout;
	uint32_t right = 0;

	for (uint32_t n = 0; n < holdout->count; n++) {
		const int8_t *const x = &holdout->embeddings[n * last->features];
		float best = last_logit(last, x, 0);
		uint32_t decision = 0;

		for (uint32_t class = 1; class < last->classes; class++) {
			const float logit = last_logit(last, x, class);

			if (logit > best) {
				best = logit;
				decision = class;
			}
		}
		right += decision == holdout->labels[n] ? 1u : 0u;
	}
	return right < holdout->least ? TINYML_ADAPT_EWORSE : 0;
}

bool tinyml_adapt_valid_last(const struct tinyml_adapt *adapt, const void *values)
{
	const struct tinyml_adapt_last *const last = (const struct tinyml_adapt_last *)adapt;

	for (uint32_t i = 0; i < last->classes * (last->features + 1u); i++) {
		const float limit = i < last->classes
					    ? last->bias_limit[i]
					    : last->limit[(i - last->classes) / last->features];
		float value;

		memcpy(&value, (const uint8_t *)values + 4u * i, sizeof(value));
		if (!(value <= limit && value >= -limit)) {
			return false;
		}
	}
	return true;
}
