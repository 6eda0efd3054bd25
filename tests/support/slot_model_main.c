/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Updates of slots, explored:
 *
 *	slot_model explore KIND BEGINS CUTS ROTS CLIENTS OLD NEW BAD NEWEST
 *	slot_model sweep KIND AGAIN DISTANCE OLD NEW BAD NEWEST
 *	slot_model kinds    names, slot bytes, and the most bytes that an image may have
 */

#include <stdlib.h>
#include <string.h>

#include "marks.h" /* of runtime/slot */
#include "slot_model.h"

static void load(struct file *file, const char *path)
{
	FILE *opened = fopen(path, "rb");
	uint32_t header[2];

	demand(opened != NULL && fread(header, sizeof(header), 1, opened) == 1, path);
	file->bytes = header[0];
	file->value = (uint8_t)header[1];
	for (int i = 0; i < 2; i++) {
		file->content[i] = malloc(file->bytes);
		demand(fread(file->content[i], file->bytes, 1, opened) == 1, path);
	}
	fclose(opened);
}

static unsigned int number(const char *text)
{
	return (unsigned int)strtoul(text, NULL, 10);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (strcmp(mode, "kinds") == 0) {
		for (unsigned int i = 0; i < kind_count; i++) {
			make_flash(&kinds[i]);
			printf("%s %u %u\n", kinds[i].name, (unsigned int)slot_bytes,
			       (unsigned int)marks_room(&world.slots.region[0]));
		}
		return 0;
	}
	if (argc < 4 + FILES) {
		return 2;
	}
	for (unsigned int i = 0; i < kind_count; i++) {
		if (strcmp(kinds[i].name, argv[2]) == 0) {
			make_flash(&kinds[i]);
		}
	}
	demand(kind != NULL, "there is no such flash");
	for (int i = 0; i < FILES; i++) {
		load(&files[i], argv[argc - FILES + i]);
	}
	world.ghost =
		(struct ghost){.sent = {-1, -1}, .kept = -1, .kept_in = -1, .last_sent = {-1, -1}};
	blank_flash();
	start();
	if (strcmp(mode, "sweep") == 0) {
		sweep(number(argv[3]) != 0u,
		      number(argv[4]) != 0u ? number(argv[4]) : kind->write_bytes);
	} else {
		explore(number(argv[3]), number(argv[4]), number(argv[5]), number(argv[6]));
	}
	return 0;
}
