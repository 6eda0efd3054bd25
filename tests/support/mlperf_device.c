/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A device of samples/mlperf_tiny on this computer, with a model that spoils its input.
 *
 *	mlperf_device values|pixels|floats       on standard input and output
 *	mlperf_device fuzz SEED COUNT            so many commands: noise and almost good ones
 *	mlperf_device mel                        int16 samples in, float32 rows of features out
 *
 * Buffers have exactly the memory that they need, so that the sanitizer sees a byte too many. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "inference.h"
#include "mel.h"
#include "th.h"

#define ELEMENTS 6

static const int32_t shape[] = {1, ELEMENTS};
static struct tinyml_tensor input = {.name = "x",
				     .shape = shape,
				     .bytes = ELEMENTS,
				     .scale = 0.5f,
				     .zero_point = -3,
				     .type = TINYML_INT8,
				     .rank = 2};
static struct tinyml_tensor output;
static unsigned long laps;
static int quiet;

/* The output is the input; nothing of the input is left. */
static int run(void)
{
	memcpy(output.data, input.data, input.bytes);
	memset(input.data, 0x55, input.bytes);
	return 0;
}

static const struct tinyml_model model = {
	.name = "same",
	.run = run,
	.inputs = &input,
	.outputs = &output,
	.input_count = 1,
	.output_count = 1,
};

void th_printf(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (!quiet) {
		(void)vprintf(format, arguments);
		(void)fflush(stdout);
	}
	va_end(arguments);
}

void th_timestamp_initialize(void)
{
}

void th_timestamp(void)
{
	th_printf("m-lap-us-%lu\r\n", laps++);
}

void th_pre(void)
{
}

void th_post(void)
{
}

void th_start_detecting(void)
{
}

void th_stop_detecting(void)
{
}

static uint32_t random_state;

static uint32_t random_below(uint32_t limit)
{
	random_state = random_state * 1664525u + 1013904223u;
	return (random_state >> 8) % limit;
}

static void fuzz(unsigned long count)
{
	static const char *const words[] = {
		"db",   "load", "print", "infer",  "results",
		"name", "24",   "7",     "-1",     "99999999999999999999",
		"0",    "1",    "ff00",  "0g",     "000102030405060708090a",
		"help", "%",    "",      "profile"};

	quiet = 1;
	for (unsigned long i = 0; i < count; i++) {
		const uint32_t parts = random_below(6);

		for (uint32_t part = 0; part < parts; part++) {
			const char *word = words[random_below(sizeof(words) / sizeof(words[0]))];

			while (*word != '\0') {
				commands_receive(*word++);
			}
			commands_receive(' ');
		}
		for (uint32_t noise = random_below(8) == 0 ? random_below(120) : 0; noise > 0;
		     noise--) {
			commands_receive((char)random_below(256));
		}
		commands_receive('%');
	}
	quiet = 0;
	th_printf("%lu commands\n", count);
}

static int features(void)
{
	int16_t samples[MEL_STEP];
	float row[MEL_BANDS];

	mel_reset();
	while (fread(samples, sizeof(samples), 1, stdin) == 1) {
		mel_row(samples, row);
		if (fwrite(row, sizeof(row), 1, stdout) != 1) {
			return 1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct commands_settings settings = {.vendor = "tests", .model = "kws01"};
	const char *const what = argc > 1 ? argv[1] : "";
	const enum inference_data kind = strcmp(what, "floats") == 0   ? INFERENCE_FLOATS
					 : strcmp(what, "pixels") == 0 ? INFERENCE_PIXELS
								       : INFERENCE_VALUES;
	char byte;

	if (strcmp(what, "mel") == 0) {
		return features();
	}
	settings.room = INFERENCE_BYTES(kind, ELEMENTS, input.bytes);
	settings.data = calloc(1, settings.room);
	input.data = calloc(1, input.bytes);
	output = input;
	output.data = calloc(1, output.bytes);
	inference_start(&model, kind, settings.data, calloc(1, input.bytes));
	commands_start(&settings);
	if (strcmp(what, "fuzz") == 0 && argc == 4) {
		random_state = (uint32_t)strtoul(argv[2], NULL, 0);
		fuzz(strtoul(argv[3], NULL, 0));
		return 0;
	}
	while (read(STDIN_FILENO, &byte, 1) == 1) {
		commands_receive(byte);
	}
	return 0;
}
