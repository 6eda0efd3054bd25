/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Counters of the model in a slot. A compiled-in model brings descriptions of its counters; here
 * they are made of what the tensors of the model say. */

#include <string.h>

#include <tinyml/slot_watch.h>

/** Elements of an input that a run counts at most. */
#define COUNTED 1024u

/** The most classes of an output without a name for each: as in the compiler. */
#define MOST_CLASSES 64u

static uint32_t slot_watch_elements(const struct tinyml_tensor *tensor, uint32_t *longest)
{
	uint32_t elements = 1;

	*longest = 1;
	for (uint32_t i = 0; i < tensor->rank; i++) {
		const uint32_t extent = (uint32_t)tensor->shape[i];

		elements *= extent;
		*longest = extent > *longest ? extent : *longest;
	}
	return elements;
}

static uint32_t slot_watch_common_divisor(uint32_t a, uint32_t b)
{
	while (b != 0u) {
		const uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Eight bins over the range of a byte, of which the outer ones have its ends alone; nothing for
 * other types, whose range is not known. */
static void slot_watch_describe_values(struct tinyml_watch_values *values,
				       const struct tinyml_tensor *tensor, uint32_t *bins,
				       const struct tinyml_slot_reference *reference)
{
	const bool bytes = tensor->type == TINYML_INT8 || tensor->type == TINYML_UINT8;
	const int32_t low = tensor->type == TINYML_INT8 ? INT8_MIN : 0;
	const bool known = reference != NULL && reference->type == tensor->type;
	uint32_t longest;

	*values = (struct tinyml_watch_values){.bins = bins, .type = tensor->type};
	values->elements = slot_watch_elements(tensor, &longest);
	if ((!bytes && !known) || values->elements == 0u) {
		return;
	}
	for (int32_t i = 0; i < TINYML_WATCH_BINS - 1; i++) {
		values->edges[i] = low + 1 + i * 254 / (TINYML_WATCH_BINS - 2);
	}
	if (known) {
		memcpy(values->edges, reference->edges, sizeof(values->edges));
		memcpy(values->reference, reference->shares, sizeof(values->reference));
		values->has_reference = true;
	}
	values->stride = (values->elements + COUNTED - 1u) / COUNTED;
	while (slot_watch_common_divisor(values->elements, values->stride) != 1u) {
		values->stride++; /* each element has its turn */
	}
}

/* A softmax of integers has a scale that no other layer has: that of its whole range. */
static bool slot_watch_is_softmax(const struct tinyml_tensor *tensor)
{
	switch (tensor->type) {
	case TINYML_INT8:
		return tensor->scale == 1.0f / 256.0f && tensor->zero_point == INT8_MIN;
	case TINYML_UINT8:
		return tensor->scale == 1.0f / 256.0f && tensor->zero_point == 0;
	default:
		return tensor->scale == 1.0f / 32768.0f && tensor->zero_point == 0;
	}
}

static bool slot_watch_describe_classes(struct tinyml_slot_watch *seen,
					const struct tinyml_tensor *tensor)
{
	struct tinyml_watch_classes *const classes = &seen->output_classes;
	uint32_t longest;
	const uint32_t elements = slot_watch_elements(tensor, &longest);
	const bool real = tensor->type == TINYML_FLOAT32;
	const bool integer = tensor->type == TINYML_INT8 || tensor->type == TINYML_UINT8 ||
			     tensor->type == TINYML_INT16;

	if (elements < 2u || elements != longest || elements > MOST_CLASSES ||
	    (!real && !(integer && tensor->scale > 0.0f && tensor->scale < 256.0f))) {
		return false;
	}
	*classes = (struct tinyml_watch_classes){
		.scores = &seen->counters.scores,
		.decisions =
			elements <= TINYML_SLOT_WATCH_CLASSES ? seen->counters.decisions : NULL,
		.classes = (uint16_t)elements,
		.type = tensor->type,
	};
	seen->undecided = real;
	if (real) {
		classes->score = tinyml_watch_logit_f32;
	} else {
		classes->score =
			slot_watch_is_softmax(tensor) ? tinyml_watch_score : tinyml_watch_logit;
		classes->multiplier = (uint32_t)(tensor->scale * 16777216.0f);
		classes->zero_point = tensor->zero_point;
	}
	return true;
}

/* Floats between 0 and 1 that add up to 1 are scores. */
static void slot_watch_look_at_floats(struct tinyml_slot_watch *seen, const void *data)
{
	struct tinyml_watch_classes *const classes = &seen->output_classes;
	uint32_t sum = 0;

	seen->undecided = false;
	for (uint32_t i = 0; i < classes->classes; i++) {
		uint32_t bits;

		memcpy(&bits, (const uint8_t *)data + 4u * i, sizeof(bits));
		if (bits > 0x3f800000u && bits != 0x80000000u) { /* above 1, or negative */
			return;
		}
		sum += bits == 0x80000000u ? 0u : tinyml_watch_score_f32(classes, (int32_t)bits, 0);
	}
	/* Each is rounded down. */
	if (sum <= TINYML_WATCH_SCORE && sum + classes->classes >= TINYML_WATCH_SCORE) {
		classes->score = tinyml_watch_score_f32;
	}
}

void tinyml_slot_watch_open(struct tinyml_slot_watch *seen)
{
	struct tinyml_model *const model = &seen->slot->model;
	struct tinyml_watch *const watch = &seen->watch;

	memset(&seen->counters, 0, sizeof(seen->counters));
	memcpy(seen->sha256, model->sha256, sizeof(seen->sha256));
	memcpy(seen->version, seen->slot->version, sizeof(seen->version));
	seen->undecided = false;
	watch->input_count = 0;
	watch->output_count = 0;
	if (model->input_count == 0u || model->output_count == 0u) {
		return; /* no model */
	}
	slot_watch_describe_values(&seen->input, &model->inputs[0], seen->counters.input_bins,
				   seen->reference);
	seen->output = (struct tinyml_watch_output){.classes = &seen->output_classes};
	if (!slot_watch_describe_classes(seen, &model->outputs[0])) {
		slot_watch_describe_values(&seen->output_values, &model->outputs[0],
					   seen->counters.output_bins, NULL);
		seen->output = (struct tinyml_watch_output){.values = &seen->output_values};
	}
	watch->inputs = &seen->input;
	watch->outputs = &seen->output;
	watch->input_count = 1;
	watch->output_count = 1;
	watch->most_runs = UINT32_MAX / COUNTED; /* scores and entropies add less */
	watch->version = seen->slot->version[0];
	model->run = seen->run_model;
}

/* Whether another model is in the slot than the one that is counted. */
static bool slot_watch_is_other(const struct tinyml_slot_watch *seen)
{
	const struct tinyml_slot *const slot = seen->slot;

	return slot->model.run != seen->run_model || seen->watch.input_count == 0u ||
	       memcmp(seen->version, slot->version, sizeof(seen->version)) != 0 ||
	       memcmp(seen->sha256, slot->model.sha256, sizeof(seen->sha256)) != 0;
}

int tinyml_slot_watch_run(struct tinyml_slot_watch *seen)
{
	const struct tinyml_model *const model = &seen->slot->model;
	const void *input, *output;
	uint32_t start;
	int status;

	if (model->input_count == 0u || model->output_count == 0u) {
		return tinyml_slot_run(seen->slot); /* no model: it fails */
	}
	if (slot_watch_is_other(seen)) {
		tinyml_slot_watch_open(seen);
	}
	input = model->inputs[0].data;
	output = model->outputs[0].data;
	tinyml_watch_before(&seen->watch, &input);
	start = TINYML_WATCH_CLOCK();
	status = tinyml_slot_run(seen->slot);
	start = TINYML_WATCH_CLOCK() - start;
	if (status == 0 && seen->undecided) {
		slot_watch_look_at_floats(seen, output);
	}
	tinyml_watch_after(&seen->watch, &output, status, start);
	return status;
}

static bool slot_watch_at_most(uint32_t counted, uint32_t of, uint32_t limit, uint32_t unit)
{
	return limit == 0u || (of > 0u && (uint64_t)counted * unit <= (uint64_t)limit * of);
}

bool tinyml_slot_watch_holds(const struct tinyml_slot_watch *seen,
			     const struct tinyml_slot_limits *limits)
{
	const struct tinyml_slot_counters *const counters = &seen->counters;
	const struct tinyml_watch_scores *const scores = &counters->scores;
	const uint32_t runs = counters->totals.runs;
	const bool decides = seen->watch.output_count > 0u && seen->output.classes != NULL;
	const bool counts = seen->watch.input_count > 0u && seen->input.stride != 0u;
	uint32_t elements = 0;

	if (counters->totals.errors > limits->errors ||
	    (!decides && (limits->margin | limits->score | limits->entropy | limits->switches)) ||
	    (!counts && limits->outside != 0u)) {
		return false;
	}
	if (limits->drift != 0u) {
		const int32_t drift = counts ? tinyml_watch_drift(&seen->input) : -1;

		if (drift < 0 || (uint32_t)drift > limits->drift) {
			return false;
		}
	}
	for (uint32_t i = 0; i < TINYML_WATCH_BINS; i++) {
		elements += counters->input_bins[i];
	}
	return (uint64_t)scores->margin >= (uint64_t)limits->margin * runs &&
	       (uint64_t)scores->top >= (uint64_t)limits->score * runs &&
	       slot_watch_at_most(scores->entropy, runs, limits->entropy, 1) &&
	       slot_watch_at_most(scores->switches, runs, limits->switches, 1000) &&
	       slot_watch_at_most(counters->input_bins[0] +
					  counters->input_bins[TINYML_WATCH_BINS - 1],
				  elements, limits->outside, 1000);
}

int tinyml_slots_confirm_by_watch(struct tinyml_slots *slots, struct tinyml_slot_watch *seen,
				  const struct tinyml_slot_limits *limits)
{
	const struct tinyml_watch_totals *const totals = &seen->counters.totals;
	int error;

	if (slot_watch_is_other(seen)) {
		tinyml_slot_watch_open(seen); /* another model than before, or its first run */
		return slots->on_trial ? TINYML_SLOT_WAITING : TINYML_SLOT_SETTLED;
	}
	if (!slots->on_trial) {
		return TINYML_SLOT_SETTLED;
	}
	if (totals->errors <= limits->errors && totals->runs < limits->runs) {
		return TINYML_SLOT_WAITING;
	}
	if (totals->runs > 0u && tinyml_slot_watch_holds(seen, limits)) {
		error = tinyml_slots_confirm(slots);
		return error != 0 ? error : TINYML_SLOT_CONFIRMED;
	}
	error = tinyml_slots_reject(slots);
	tinyml_slot_watch_open(seen);
	return error != 0 && error != TINYML_SLOT_NONE ? error : TINYML_SLOT_GIVEN_UP;
}
