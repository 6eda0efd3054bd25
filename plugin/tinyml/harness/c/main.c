/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Runs any compiled model on samples from a file and writes its outputs and the cost of each run to
 * another. The same source serves the host and every QEMU machine; port.h hides the difference.
 *
 * The sample file, in little-endian words: magic, number of samples, bytes of all inputs together,
 * bytes of all outputs together; then for each sample a word of flags and the inputs one after the
 * other. The result file: the cost of calling a function that does nothing; then for each sample
 * the cost of the run and the outputs one after the other. */

#include <tinyml/tinyml.h>

#include "port.h"

#define MAGIC        0x314c4d54u /* "TML1" */
#define FLAG_RESET   1u          /* forget the state before this sample */
#define EXIT_PROBLEM 2

#ifdef TINYML_HARNESS_OPEN
/* A model that is not linked in: this function finds it, or prints why not and returns NULL. */
const struct tinyml_model *TINYML_HARNESS_OPEN(void);
#else
extern const struct tinyml_model TINYML_HARNESS_MODEL;
#endif

/* One instruction on every core, so that the cost of a call is known exactly. The host counts
 * nothing. */
#if defined(__arm__)
__attribute__((naked)) static int nothing(void)
{
	__asm volatile("bx lr");
}
#elif defined(__riscv)
__attribute__((naked)) static int nothing(void)
{
	__asm volatile("ret");
}
#else
static int nothing(void)
{
	return 0;
}
#endif

static uint32_t total_bytes(const struct tinyml_tensor *tensors, uint8_t count)
{
	uint32_t bytes = 0;

	for (uint8_t i = 0; i < count; i++) {
		bytes += tensors[i].bytes;
	}
	return bytes;
}

_Noreturn static void refuse(const char *why)
{
	port_print(why);
	port_exit(EXIT_PROBLEM);
}

#ifdef TINYML_HARNESS_ROW_BYTES
/* The input arrives in rows, from here. */
static uint8_t image[TINYML_HARNESS_INPUT_BYTES];

static int feed_rows(void)
{
	int missing = TINYML_HARNESS_MODEL.begin();

	for (size_t at = 0; at < sizeof(image) && missing >= 0; at += TINYML_HARNESS_ROW_BYTES) {
		missing = TINYML_HARNESS_MODEL.feed(&image[at], TINYML_HARNESS_ROW_BYTES);
	}
	return missing;
}
#endif

#ifdef TINYML_HARNESS_ARGUMENTS
/* The model has no memory for inputs and outputs: they are here. */
static _Alignas(16) uint8_t buffers[TINYML_HARNESS_BUFFERS_BYTES];

int TINYML_HARNESS_RUN(TINYML_HARNESS_PARAMETERS);

static int run_with_buffers(void)
{
	return TINYML_HARNESS_RUN(TINYML_HARNESS_ARGUMENTS);
}
#endif

/* The memory of one of the inputs, which are followed by the outputs. */
static void *data_of(const struct tinyml_model *model, uint16_t index)
{
#ifdef TINYML_HARNESS_ARGUMENTS
	static void *const places[] = {TINYML_HARNESS_ARGUMENTS};

	(void)model;
	return places[index];
#else
	const uint8_t inputs = model->input_count;

	return index < inputs ? model->inputs[index].data : model->outputs[index - inputs].data;
#endif
}

static int (*run_of(const struct tinyml_model *model))(void)
{
#ifdef TINYML_HARNESS_ROW_BYTES
	(void)model;
	return feed_rows;
#elif defined(TINYML_HARNESS_ARGUMENTS)
	(void)model;
	return run_with_buffers;
#else
	return model->run;
#endif
}

static void read_inputs(const struct tinyml_model *model)
{
#ifdef TINYML_HARNESS_ROW_BYTES
	(void)model;
	port_read(image, sizeof(image));
	return;
#endif
	for (uint8_t i = 0; i < model->input_count; i++) {
		port_read(data_of(model, i), model->inputs[i].bytes);
	}
}

static void write_outputs(const struct tinyml_model *model)
{
	for (uint8_t i = 0; i < model->output_count; i++) {
		port_write(data_of(model, (uint16_t)(model->input_count + i)),
			   model->outputs[i].bytes);
	}
}

static void run_sample(const struct tinyml_model *model)
{
	struct port_cost cost = {0};
	uint32_t flags;

	port_read(&flags, sizeof(flags));
	if ((flags & FLAG_RESET) != 0u && model->reset != NULL) {
		model->reset();
	}
	read_inputs(model);
#ifdef TINYML_HARNESS_PROFILE_H_ /* the port header, if layers are profiled */
	profile_reset();
#endif
	port_measure(run_of(model), &cost);
	port_write(&cost, sizeof(cost));
	write_outputs(model);
}

int main(void)
{
#ifdef TINYML_HARNESS_OPEN
	const struct tinyml_model *model = TINYML_HARNESS_OPEN();
#else
	const struct tinyml_model *model = &TINYML_HARNESS_MODEL;
#endif
	struct port_cost cost = {0};
	uint32_t header[4];

	if (model == NULL) {
		port_exit(EXIT_PROBLEM);
	}
	port_open();
	port_read(header, sizeof(header));
	if (header[0] != MAGIC) {
		refuse("harness: the sample file is not one\n");
	}
	if (header[2] != total_bytes(model->inputs, model->input_count)) {
		refuse("harness: the samples are not as large as the model's inputs\n");
	}
	if (header[3] != total_bytes(model->outputs, model->output_count)) {
		refuse("harness: the outputs are not as large as expected\n");
	}
	port_measure(nothing, &cost);
	port_write(&cost, sizeof(cost));
	for (uint32_t i = 0; i < header[1]; i++) {
		run_sample(model);
	}
	port_close();
#ifdef TINYML_HARNESS_PROFILE_H_
	profile_print();
#endif
	port_print(model->name);
	port_print(": done\n");
	port_exit(0);
}
