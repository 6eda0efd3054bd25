/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

#define MAGIC 0x31424d54u /* "TMB1" */

struct header header;
struct op *ops;
static int32_t *places; /* by half-word of the code */

static void read_exactly(FILE *file, void *to, size_t bytes)
{
	if (fread(to, 1, bytes, file) != bytes) {
		fail("the program ends early");
	}
}

static void *room_for(size_t bytes)
{
	void *found = malloc(bytes + 1);

	if (found == NULL) {
		fail("out of memory");
	}
	return found;
}

void read_program(const char *name)
{
	FILE *file = fopen(name, "rb");

	if (file == NULL) {
		fail("the program cannot be read");
	}
	read_exactly(file, &header, sizeof(header));
	if (header.magic != MAGIC || header.layers > MAX_LAYERS) {
		fail("the program is not one");
	}
	ops = room_for(header.ops * sizeof(*ops));
	read_exactly(file, ops, header.ops * sizeof(*ops));
	places = room_for((header.code_bytes / 2u + 1u) * sizeof(*places));
	memset(places, -1, (header.code_bytes / 2u + 1u) * sizeof(*places));
	for (uint32_t i = 0; i < header.ops; i++) {
		places[(ops[i].address - header.code_base) / 2u] = (int32_t)i;
	}
	for (uint32_t i = 0; i < header.segments; i++) {
		uint32_t words[4];
		uint8_t *content, *unknown;

		read_exactly(file, words, sizeof(words));
		content = room_for(words[1]);
		unknown = room_for(words[1]);
		read_exactly(file, content, words[1]);
		read_exactly(file, unknown, words[1]);
		add_segment(words[0], words[1], words[2], words[3], content, unknown);
		free(content);
		free(unknown);
	}
	fclose(file);
}

const struct op *op_at(uint32_t address)
{
	const uint32_t at = address - header.code_base;

	return at >= header.code_bytes || places[at / 2u] < 0 ? NULL : &ops[places[at / 2u]];
}
