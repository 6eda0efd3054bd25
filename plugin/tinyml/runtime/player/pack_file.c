/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The image for this core in a file, without the others. */

#include <string.h>

#include <tinyml/pack_file.h>

#include "../slot/format.h"
#include "pack.h"

/* The start of an image. */
struct pack_file_start {
	struct container_header header;
	struct descriptor descriptor;
};

static int pack_file_read(const struct tinyml_pack_file *file, uint32_t position, void *data,
			  uint32_t bytes)
{
	if (position > file->bytes || bytes > file->bytes - position) {
		return TINYML_SLOT_BOUNDS;
	}
	return file->read(file->context, position, data, bytes) == 0 ? 0 : TINYML_SLOT_FLASH;
}

int tinyml_pack_find(const struct tinyml_pack_file *file, uint32_t *position, uint32_t *bytes)
{
	struct pack pack;
	uint32_t most = 0;
	int found = TINYML_SLOT_CORE_TOO_SMALL;
	int error = pack_file_read(file, 0, &pack, sizeof(pack));

	if (error != 0) {
		return error;
	}
	if (memcmp(pack.magic, PACK_MAGIC, sizeof(pack.magic)) != 0) {
		*position = 0;
		*bytes = file->bytes;
		return 0;
	}
	if (pack.images > (file->bytes - sizeof(pack)) / sizeof(struct pack_entry)) {
		return TINYML_SLOT_BOUNDS;
	}
	for (uint32_t i = 0; i < pack.images; i++) {
		struct pack_file_start start;
		struct pack_entry entry;
		uint32_t core;

		error = pack_file_read(file, (uint32_t)(sizeof(pack) + i * sizeof(entry)), &entry,
				       sizeof(entry));
		if (error == 0) {
			error = pack_file_read(file, entry.position, &start, sizeof(start));
		}
		if (error != 0) {
			return error;
		}
		if (entry.bytes > file->bytes - entry.position) {
			return TINYML_SLOT_BOUNDS;
		}
		core = start.descriptor.core;
		if (start.header.magic == MCUBOOT_MAGIC &&
		    start.descriptor.interface == TINYML_PLAYER_INTERFACE &&
		    (core & ~TINYML_PLAYER_CORE) == 0u && core >= most) {
			most = core;
			*position = entry.position;
			*bytes = entry.bytes;
			found = 0;
		}
	}
	return found;
}

int tinyml_player_load(struct tinyml_player *player, const struct tinyml_pack_file *file,
		       void *memory, uint32_t room)
{
	uint32_t position = 0, bytes = 0;
	int error = tinyml_pack_find(file, &position, &bytes);

	tinyml_player_close(player); /* its image may have been in the same memory */
	if (error == 0 && (bytes > room || (uintptr_t)memory % TINYML_PLAYER_ALIGNMENT != 0u)) {
		error = TINYML_SLOT_REGION;
	}
	if (error == 0) {
		error = pack_file_read(file, position, memory, bytes);
	}
	return error != 0 ? error : tinyml_player_open(player, memory, bytes);
}
