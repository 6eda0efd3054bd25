/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A language model goes on with texts, character by character. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <zephyr/toolchain.h>

#include <writer.h>

#define LENGTH  96 /* characters of a text, as many as the model's caches have rows */
#define COLUMNS 64 /* after which a line is broken at the next space */

/* In the order of the model's outputs; text.py has the same. */
static const char characters[] = "\n !\"'()*,-./0123456789:;=ABCDEFGHIJKLMNOPQRSTUVWXYZ[]_"
				 "abcdefghijklmnopqrstuvwxyz";

BUILD_ASSERT(WRITER_OUTPUT_ELEMENTS == sizeof(characters) - 1,
	     "the model has other characters than the application");

static const char *const beginnings[] = {"A function ", "This is "};

static uint32_t state = 1;

/* From 0 to 1: always the same numbers, so that the texts can be checked. */
static float random_share(void)
{
	state = state * 1664525u + 1013904223u;
	return (float)(state >> 8) / 16777216.0f;
}

/* A character, each as often as the model says. */
static char choose(const float *probabilities)
{
	const float share = random_share();
	float sum = 0.0f;
	size_t i = 0;

	while (i < sizeof(characters) - 2) {
		sum += probabilities[i];
		if (sum > share) {
			break;
		}
		i++;
	}
	return characters[i];
}

/* The model reads one character, and tells what may follow it. */
static int read_character(char character, int32_t position)
{
	const char *place = strchr(characters, character);

	writer_input_character()[0] = (int32_t)(place - characters);
	writer_input_position()[0] = position;
	return writer_run();
}

/* A space waits for the word that follows it, which may be on the next line. */
static void show(char character)
{
	static bool space;
	static int column;

	if (character == ' ') {
		space = true;
		return;
	}
	if (character == '\n' || (space && column >= COLUMNS)) {
		printf("\n");
		column = 0;
	} else if (space) {
		printf(" ");
		column++;
	}
	space = false;
	if (character != '\n') {
		printf("%c", character);
		column++;
	}
}

/* Texts start after the end of a paragraph, and end with the next one, or when the caches are full.
 */
static int write_text(const char *beginning)
{
	char character = '\n';

	for (int32_t position = 0; position < LENGTH; position++) {
		if (read_character(character, position) != 0) {
			return -1;
		}
		character = *beginning != '\0' ? *beginning++ : choose(writer_output());
		if (character == '\n') {
			break;
		}
		show(character);
	}
	show('\n');
	return 0;
}

int main(void)
{
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++) {
		if (write_text(beginnings[i]) != 0) {
			printf("the model failed to run\n");
			return 1;
		}
	}
	printf("writer: done\n");
	return 0;
}
