/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The test that travels with a model without code: noise in, known numbers out. */

#include <string.h>

#include "../slot/format.h"
#include "program.h"

static uint32_t self_test_noise(uint32_t noise)
{
	noise ^= noise << 13;
	noise ^= noise >> 17;
	return noise ^ noise << 5;
}

static uint32_t self_test_count(const struct tinyml_tensor *tensor)
{
	return tensor->bytes / tinyml_player_sizes[tensor->type];
}

static float self_test_float(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint32_t self_test_fill(const struct tinyml_tensor *tensor, const struct test_input *test,
			       uint32_t noise)
{
	const uint32_t size = tinyml_player_sizes[tensor->type], count = self_test_count(tensor);
	uint8_t *to = tensor->data;

	for (uint32_t i = 0; i < count; i++, to += size) {
		noise = self_test_noise(noise);
		if (tensor->type == TINYML_FLOAT32) {
			const float value = self_test_float(test->low) +
					    (float)(noise >> 24) * self_test_float(test->span);

			memcpy(to, &value, sizeof(value));
		} else { /* little-endian: the lowest bytes of the integer come first */
			const uint32_t value = test->low + ((noise >> 24) * test->span >> 8);

			memcpy(to, &value, size < 4u ? size : 4u);
		}
	}
	return noise;
}

static int32_t self_test_integer(const uint8_t *from, uint8_t type)
{
	int16_t half;
	int32_t word;

	switch (type) {
	case TINYML_INT8:
		return (int8_t)from[0];
	case TINYML_INT16:
		memcpy(&half, from, sizeof(half));
		return half;
	case TINYML_UINT16:
		return from[0] | from[1] << 8;
	case TINYML_INT32:
	case TINYML_UINT32:
		memcpy(&word, from, sizeof(word));
		return word;
	default:
		return from[0];
	}
}

/* Other roundings may make the next integer of a real number. Every `step`th element is compared.
 */
static bool self_test_integers(const struct tinyml_tensor *tensor, const uint8_t *expected,
			       uint32_t step)
{
	const uint32_t size = tinyml_player_sizes[tensor->type], count = self_test_count(tensor);
	const uint8_t *found = tensor->data;

	for (uint32_t i = 0; i < count; i += step, expected += size) {
		const int64_t difference =
			(int64_t)self_test_integer(found + i * size, tensor->type) -
			self_test_integer(expected, tensor->type);

		if (difference > 1 || difference < -1) {
			return false;
		}
	}
	return true;
}

/* Other roundings are fine, other results are not. What is infinite or not a number must stay so.
 */
static bool self_test_floats(const struct tinyml_tensor *tensor, const float *expected,
			     const struct test_output *test, uint32_t step)
{
	const float *const found = tensor->data;
	const uint32_t count = self_test_count(tensor);
	float largest = 0.0f, allowed;

	for (uint32_t i = 0; i * step < count; i++) {
		const float size = expected[i] < 0.0f ? -expected[i] : expected[i];

		largest = size > largest && size - size == 0.0f ? size : largest;
	}
	allowed = largest * test->relative + test->absolute;
	for (uint32_t i = 0; i * step < count; i++) {
		const float value = found[i * step], error = value - expected[i];

		if (value != expected[i] && (value == value || expected[i] == expected[i]) &&
		    !(error <= allowed && -error <= allowed)) {
			return false;
		}
	}
	return true;
}

/* Elements of eight bytes. */
static bool self_test_wide(const struct tinyml_tensor *tensor, const uint8_t *expected,
			   uint32_t step)
{
	const uint8_t *const found = tensor->data;

	for (uint32_t i = 0; i < tensor->bytes; i += 8u * step, expected += 8) {
		if (memcmp(found + i, expected, 8) != 0) {
			return false;
		}
	}
	return true;
}

int tinyml_player_self_test(struct tinyml_player *player)
{
	const uint8_t *const image = player->memory[TINYML_PLAYER_IMAGE];
	const struct tinyml_model *const model = &player->model;
	const struct test_input *inputs;
	const struct test_output *outputs;
	uint32_t noise = 1, step;
	bool fine = true;

	if (player->program == NULL || player->test == 0u) {
		return TINYML_SLOT_NONE;
	}
	step = tinyml_program_test_step(player->program);
	inputs = (const void *)(image + player->test);
	outputs = (const void *)(inputs + model->input_count);
	tinyml_player_reset(player);
	for (uint32_t i = 0; i < model->input_count; i++) {
		noise = self_test_fill(&model->inputs[i], &inputs[i], noise);
	}
	(void)tinyml_player_run(player);
	for (uint32_t i = 0; i < model->output_count && fine; i++) {
		const struct tinyml_tensor *const output = &model->outputs[i];
		const void *const expected = image + outputs[i].expected;

		if (output->type == TINYML_FLOAT32) {
			fine = self_test_floats(output, expected, &outputs[i], step);
		} else if (tinyml_player_sizes[output->type] > 4u) {
			fine = self_test_wide(output, expected, step);
		} else {
			fine = self_test_integers(output, expected, step);
		}
	}
	tinyml_player_reset(player);
	return fine ? 0 : TINYML_SLOT_SELF_TEST;
}
