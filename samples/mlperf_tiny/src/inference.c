/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include "commands.h"
#include "inference.h"
#include "th.h"

#define DECIMALS 1000000u
#define MOST     4.0e9f /* that is printed */

static const struct tinyml_model *model;
static enum inference_data kind;
static const uint8_t *data;
static uint8_t *input; /* what every run gets, since a run may overwrite its own */
static int failed;

void inference_start(const struct tinyml_model *its_model, enum inference_data its_kind,
		     const uint8_t *its_data, uint8_t *its_input)
{
	model = its_model;
	kind = its_kind;
	data = its_data;
	input = its_input;
}

uint32_t inference_elements(const struct tinyml_tensor *tensor)
{
	return tensor->type == TINYML_FLOAT32 ? tensor->bytes / 4u : tensor->bytes;
}

float inference_value(const struct tinyml_tensor *tensor, uint32_t index)
{
	const uint8_t *const bytes = tensor->data;
	float value;
	int32_t stored;

	if (tensor->type == TINYML_FLOAT32) {
		memcpy(&value, bytes + 4u * index, sizeof(value));
		return value;
	}
	stored = tensor->type == TINYML_INT8 ? (int8_t)bytes[index] : bytes[index];
	return tensor->scale == 0.0f ? (float)stored
				     : tensor->scale * (float)(stored - tensor->zero_point);
}

void inference_store(const struct tinyml_tensor *tensor, void *to, uint32_t index, float value)
{
	const float least = tensor->type == TINYML_INT8 ? -128.0f : 0.0f;
	float stored;

	if (tensor->type == TINYML_FLOAT32) {
		memcpy((uint8_t *)to + 4u * index, &value, sizeof(value));
		return;
	}
	stored = tensor->scale == 0.0f ? value : value / tensor->scale + (float)tensor->zero_point;
	stored = stored < least ? least : (stored > least + 255.0f ? least + 255.0f : stored);
	((uint8_t *)to)[index] = (uint8_t)(int32_t)(stored + (stored < 0.0f ? -0.5f : 0.5f));
}

static float sent_float(uint32_t index)
{
	float value;

	memcpy(&value, data + 4u * index, sizeof(value));
	return value;
}

void th_load_tensor(void)
{
	const struct tinyml_tensor *const tensor = &model->inputs[0];
	const uint32_t elements = inference_elements(tensor);
	const size_t expected = INFERENCE_BYTES(kind, elements, tensor->bytes);

	if (commands_loaded() != expected) {
		th_printf("e-[The model takes %u bytes; %u were loaded]\r\n",
			  (unsigned int)expected, (unsigned int)commands_loaded());
	}
	if (kind == INFERENCE_VALUES) {
		memcpy(input, data, tensor->bytes);
		return;
	}
	for (uint32_t i = 0; i < elements; i++) {
		if (kind == INFERENCE_FLOATS) {
			inference_store(tensor, input, i, sent_float(i));
		} else if (tensor->type == TINYML_FLOAT32) {
			inference_store(tensor, input, i, (float)data[i] / 255.0f);
		} else { /* bytes of 0 to 255, whatever they are scaled with */
			input[i] = (uint8_t)(data[i] - (tensor->type == TINYML_INT8 ? 128u : 0u));
		}
	}
}

void th_infer(void)
{
	memcpy(model->inputs[0].data, input, model->inputs[0].bytes);
	failed = model->run();
}

/* printf() may have no floats. */
static void print_number(float value, const char *after)
{
	const float size = value < 0.0f ? -value : value;
	uint32_t whole = (uint32_t)(size < MOST ? size : MOST);
	uint32_t parts = size < MOST ? (uint32_t)((size - (float)whole) * DECIMALS + 0.5f) : 0u;

	whole += parts / DECIMALS; /* rounded up to the next one */
	th_printf("%s%u.%06u%s", value < 0.0f ? "-" : "", (unsigned int)whole,
		  (unsigned int)(parts % DECIMALS), after);
}

/* The mean squared difference between what was sent and what the model made of it. */
static float reconstruction_error(const struct tinyml_tensor *output)
{
	const uint32_t sent = inference_elements(&model->inputs[0]);
	const uint32_t given = inference_elements(output);
	const uint32_t elements = given < sent ? given : sent;
	float sum = 0.0f;

	for (uint32_t i = 0; i < elements; i++) {
		const float difference = inference_value(output, i) - sent_float(i);

		sum += difference * difference;
	}
	return sum / (float)elements;
}

void th_results(void)
{
	const struct tinyml_tensor *const output = &model->outputs[0];
	const uint32_t elements = inference_elements(output);

	if (failed != 0) {
		th_printf("e-[The model failed to run: %d]\r\n", failed);
		return;
	}
	th_printf("m-results-[");
	if (kind == INFERENCE_FLOATS) {
		print_number(reconstruction_error(output), "");
	} else {
		for (uint32_t i = 0; i < elements; i++) {
			print_number(inference_value(output, i), i + 1 < elements ? "," : "");
		}
	}
	th_printf("]\r\n");
}
