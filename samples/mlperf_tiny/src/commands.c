/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "th.h"

#define MOST_CHARACTERS 80 /* of a command */
#define MOST_WORDS      4
#define MOST_RUNS       1000000L
#define BYTES_IN_LINE   8u
#define DEFAULT_WARM_UP 10
#define TERMINATOR      '%'

static const struct commands_settings *device;
static char line[MOST_CHARACTERS + 1];
static size_t length;
static bool too_long;
static size_t wanted; /* bytes, by `db load` */
static size_t loaded;

static int hex_digit(char character)
{
	if (character >= '0' && character <= '9') {
		return character - '0';
	}
	if (character >= 'a' && character <= 'f') {
		return character - 'a' + 10;
	}
	if (character >= 'A' && character <= 'F') {
		return character - 'A' + 10;
	}
	return -1;
}

/* A decimal number from `least` to `most`; -1 for anything else. */
static long number(const char *text, long least, long most)
{
	char *end;
	const long value = strtol(text, &end, 10);

	return *text != '\0' && *end == '\0' && value >= least && value <= most ? value : -1;
}

static void load(const char *text)
{
	const long bytes = text == NULL ? -1 : number(text, 1, (long)device->room);

	if (bytes < 0) {
		th_printf("e-[db load takes a number of bytes from 1 to %u]\r\n",
			  (unsigned int)device->room);
		return;
	}
	wanted = (size_t)bytes;
	loaded = 0;
	th_printf("m-[Expecting %u bytes]\r\n", (unsigned int)wanted);
}

static void fill(const char *digits)
{
	const size_t count = strlen(digits);

	if (count % 2 != 0) {
		th_printf("e-[A byte has two hexadecimal digits]\r\n");
		return;
	}
	for (size_t i = 0; i < count; i++) {
		if (hex_digit(digits[i]) < 0) {
			th_printf("e-[Not a hexadecimal digit at %u]\r\n", (unsigned int)i);
			return;
		}
	}
	if (loaded == wanted) {
		th_printf("e-[Bytes that no db load announced]\r\n");
		return;
	}
	for (size_t i = 0; i < count && loaded < wanted; i += 2) {
		device->data[loaded++] =
			(uint8_t)(hex_digit(digits[i]) * 16 + hex_digit(digits[i + 1]));
	}
	if (loaded == wanted) {
		th_printf("m-load-done\r\n");
	}
}

static void print_data(void)
{
	for (size_t i = 0; i < loaded; i++) {
		const bool last = i % BYTES_IN_LINE == BYTES_IN_LINE - 1u || i + 1 == loaded;

		th_printf("%s%02x%s", i % BYTES_IN_LINE == 0 ? "m-buffer-" : "", device->data[i],
			  last ? "\r\n" : "-");
	}
}

static void buffer(char *const *words)
{
	if (words[1] == NULL) {
		th_printf("e-[db takes load, print or hexadecimal digits]\r\n");
	} else if (strcmp(words[1], "load") == 0) {
		load(words[2]);
	} else if (strcmp(words[1], "print") == 0) {
		print_data();
	} else {
		fill(words[1]);
	}
}

static void infer(char *const *words)
{
	const long runs = words[1] == NULL ? 1 : number(words[1], 1, MOST_RUNS);
	const long warm_up = words[1] == NULL || words[2] == NULL ? DEFAULT_WARM_UP
								  : number(words[2], 0, MOST_RUNS);

	if (runs < 0 || warm_up < 0) {
		th_printf("e-[infer takes the number of runs, and that of runs to warm up]\r\n");
		return;
	}
	th_load_tensor();
	th_printf("m-warmup-start-%ld\r\n", warm_up);
	for (long i = 0; i < warm_up; i++) {
		th_infer();
	}
	th_printf("m-warmup-done\r\n");
	th_printf("m-infer-start-%ld\r\n", runs);
	th_timestamp();
	th_pre();
	for (long i = 0; i < runs; i++) {
		th_infer();
	}
	th_post();
	th_timestamp();
	th_printf("m-infer-done\r\n");
	th_results();
}

static void help(void)
{
	th_printf("name, profile, help, timestamp, results\r\n");
	th_printf("db load BYTES, then db HEX...; db print\r\n");
	th_printf("infer [RUNS=1 [WARMUP=10]]\r\n");
	th_printf("start, stop: streaming wake word\r\n");
}

static void execute(void)
{
	char *words[MOST_WORDS + 1] = {NULL};
	char *rest = line;
	size_t count = 0;

	while (count < MOST_WORDS && *(rest += strspn(rest, " \r\n")) != '\0') {
		words[count++] = rest;
		rest += strcspn(rest, " \r\n");
		if (*rest != '\0') {
			*rest++ = '\0';
		}
	}
	if (too_long || words[0] == NULL) {
		th_printf("e-[Unknown command: %s]\r\n", too_long ? "too long" : "");
	} else if (strcmp(words[0], "name") == 0) {
		th_printf("m-name-dut-[%s]\r\n", device->vendor);
	} else if (strcmp(words[0], "profile") == 0) {
		th_printf("m-profile-[west-tinyml for MLPerf Tiny]\r\n");
		th_printf("m-model-[%s]\r\n", device->model);
	} else if (strcmp(words[0], "timestamp") == 0) {
		th_timestamp();
	} else if (strcmp(words[0], "db") == 0) {
		buffer(words);
	} else if (strcmp(words[0], "infer") == 0) {
		infer(words);
	} else if (strcmp(words[0], "results") == 0) {
		th_results();
	} else if (strcmp(words[0], "start") == 0) {
		th_start_detecting();
	} else if (strcmp(words[0], "stop") == 0) {
		th_stop_detecting();
	} else if (strcmp(words[0], "help") == 0) {
		help();
	} else {
		th_printf("e-[Unknown command: %s]\r\n", words[0]);
	}
	th_printf("m-ready\r\n");
}

void commands_start(const struct commands_settings *settings)
{
	device = settings;
	th_timestamp_initialize();
	th_printf("m-init-done\r\n");
	th_printf("m-ready\r\n");
}

void commands_receive(char byte)
{
	if (byte == TERMINATOR) {
		line[length] = '\0';
		execute();
		length = 0;
		too_long = false;
	} else if (length < MOST_CHARACTERS) {
		line[length++] = byte;
	} else {
		too_long = true;
	}
}

size_t commands_loaded(void)
{
	return loaded;
}
