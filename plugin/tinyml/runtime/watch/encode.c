/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The counters of a model as CBOR. Only the bytes of a window are written, so that a line with
 * small frames needs no buffer for all of it. */

#include <string.h>

#include <tinyml/watch.h>

enum encode_major {
	UNSIGNED = 0,
	NEGATIVE = 1,
	BYTES = 2,
	TEXT = 3,
	ARRAY = 4,
	MAP = 5,
};

struct encode_window {
	uint8_t *buffer;
	size_t offset; /* of the buffer's first byte in the whole */
	size_t room;
	size_t at;
};

static void encode_put(struct encode_window *w, const void *data, size_t bytes)
{
	const uint8_t *from = data;

	for (size_t i = 0; i < bytes; i++, w->at++) {
		if (w->at >= w->offset && w->at - w->offset < w->room) {
			w->buffer[w->at - w->offset] = from[i];
		}
	}
}

/* The shortest head with this value. */
static void encode_head(struct encode_window *w, enum encode_major major, uint64_t value)
{
	const uint32_t size = value < 24u           ? 0u
			      : value <= UINT8_MAX  ? 1u
			      : value <= UINT16_MAX ? 2u
			      : value <= UINT32_MAX ? 4u
						    : 8u;
	const uint32_t more = size == 0u   ? (uint32_t)value
			      : size == 1u ? 24u
			      : size == 2u ? 25u
			      : size == 4u ? 26u
					   : 27u;
	uint8_t head[9];

	head[0] = (uint8_t)((uint32_t)major << 5 | more);
	for (uint32_t i = 0; i < size; i++) {
		head[1u + i] = (uint8_t)(value >> (8u * (size - 1u - i)));
	}
	encode_put(w, head, 1u + size);
}

static void encode_text(struct encode_window *w, const char *text)
{
	const size_t bytes = strlen(text);

	encode_head(w, TEXT, bytes);
	encode_put(w, text, bytes);
}

static void encode_integer(struct encode_window *w, int64_t value)
{
	encode_head(w, value < 0 ? NEGATIVE : UNSIGNED,
		    value < 0 ? (uint64_t)(-1 - value) : (uint64_t)value);
}

static void encode_number(struct encode_window *w, const char *key, int64_t value)
{
	encode_text(w, key);
	encode_integer(w, value);
}

static void encode_words(struct encode_window *w, const char *key, const uint32_t *words,
			 uint32_t count)
{
	encode_text(w, key);
	encode_head(w, ARRAY, count);
	for (uint32_t i = 0; i < count; i++) {
		encode_integer(w, words[i]);
	}
}

static void encode_values(struct encode_window *w, const char *name,
			  const struct tinyml_watch_values *values)
{
	const bool counted = values->stride != 0u;

	encode_head(w, MAP, counted ? values->has_reference ? 6u : 4u : 1u);
	encode_text(w, "name");
	encode_text(w, name);
	if (!counted) {
		return;
	}
	encode_number(w, "type", values->type);
	encode_words(w, "bins", values->bins, TINYML_WATCH_BINS);
	encode_text(w, "edges");
	encode_head(w, ARRAY, TINYML_WATCH_BINS - 1u);
	for (uint32_t i = 0; i < TINYML_WATCH_BINS - 1u; i++) {
		encode_integer(w, values->edges[i]);
	}
	if (values->has_reference) {
		encode_text(w, "reference");
		encode_head(w, ARRAY, TINYML_WATCH_BINS);
		for (uint32_t i = 0; i < TINYML_WATCH_BINS; i++) {
			encode_integer(w, values->reference[i]);
		}
		encode_number(w, "drift", tinyml_watch_drift(values));
	}
}

static void encode_classes(struct encode_window *w, const char *name,
			   const struct tinyml_watch_classes *classes)
{
	const struct tinyml_watch_scores *const scores = classes->scores;

	encode_head(w, MAP,
		    7u + (classes->decisions != NULL ? 1u : 0u) +
			    (classes->transitions != NULL ? 1u : 0u));
	encode_text(w, "name");
	encode_text(w, name);
	encode_number(w, "classes", classes->classes);
	encode_number(w, "switches", scores->switches);
	encode_number(w, "last", scores->last);
	encode_number(w, "top", scores->top);
	encode_number(w, "margin", scores->margin);
	encode_number(w, "entropy", scores->entropy);
	if (classes->decisions != NULL) {
		encode_words(w, "decisions", classes->decisions, classes->classes);
	}
	if (classes->transitions != NULL) {
		const size_t bytes = (size_t)classes->classes * (classes->classes - 1u);

		encode_text(w, "transitions");
		encode_head(w, BYTES, bytes);
		encode_put(w, classes->transitions, bytes);
	}
}

size_t tinyml_watch_encode(const struct tinyml_watch *watch, size_t offset, uint8_t *buffer,
			   size_t room)
{
	struct encode_window w = {.buffer = buffer, .offset = offset, .room = room, .at = 0};
	const struct tinyml_model *const model = watch->model;
	const struct tinyml_watch_totals *const totals = watch->totals;

	encode_head(&w, MAP, watch->channel_count > 0u ? 10 : 9);
	encode_text(&w, "name");
	encode_text(&w, model->name);
	encode_text(&w, "sha256");
	encode_head(&w, BYTES, sizeof(model->sha256));
	encode_put(&w, model->sha256, sizeof(model->sha256));
	encode_number(&w, "version", watch->version);
	encode_number(&w, "runs", totals->runs);
	encode_number(&w, "most", watch->most_runs);
	encode_number(&w, "errors", totals->errors);
	encode_text(&w, "cycles");
	encode_head(&w, ARRAY, 3);
	encode_integer(&w, totals->cycles_min);
	encode_integer(&w, totals->cycles_max);
	encode_integer(&w, (int64_t)totals->cycles);
	encode_text(&w, "inputs");
	encode_head(&w, ARRAY, watch->input_count);
	for (uint32_t i = 0; i < watch->input_count; i++) {
		encode_values(&w, model->inputs[i].name, &watch->inputs[i]);
	}
	if (watch->channel_count > 0u) {
		encode_text(&w, "channels");
		encode_head(&w, ARRAY, watch->channel_count);
		for (uint32_t i = 0; i < watch->channel_count; i++) {
			encode_values(&w, model->inputs[0].name,
				      &watch->inputs[watch->input_count + i]);
		}
	}
	encode_text(&w, "outputs");
	encode_head(&w, ARRAY, watch->output_count);
	for (uint32_t i = 0; i < watch->output_count; i++) {
		const struct tinyml_watch_output *const output = &watch->outputs[i];

		if (output->classes != NULL) {
			encode_classes(&w, model->outputs[i].name, output->classes);
		} else {
			encode_values(&w, model->outputs[i].name, output->values);
		}
	}
	return w.at;
}
