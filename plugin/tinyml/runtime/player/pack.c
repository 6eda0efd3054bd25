/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A pack: images of one model for several cores, each with an entry that says where it is. */

#include <string.h>

#include "../slot/format.h"
#include "pack.h"
#include "program.h"

/* What an image needs of a core; *fits is false for anything that is no image without code. */
static uint32_t pack_core(const uint8_t *image, uint32_t bytes, bool *fits)
{
	const struct container_header *header = (const void *)image;
	const struct descriptor *descriptor = (const void *)(header + 1);

	*fits = (uintptr_t)image % TINYML_PLAYER_ALIGNMENT == 0u &&
		bytes >= sizeof(*header) + sizeof(*descriptor) && header->magic == MCUBOOT_MAGIC &&
		descriptor->interface == TINYML_PLAYER_INTERFACE &&
		(descriptor->core & ~TINYML_PLAYER_CORE) == 0u;
	return *fits ? descriptor->core : 0u;
}

int tinyml_pack_choose(const void **start, uint32_t *bytes)
{
	const uint8_t *const file = *start;
	const struct pack *const pack = *start;
	const struct pack_entry *const entries = (const void *)(file + sizeof(*pack));
	const uint32_t room = *bytes;
	uint32_t most = 0;
	int error = TINYML_SLOT_CORE_TOO_SMALL;

	if ((uintptr_t)file % TINYML_PLAYER_ALIGNMENT != 0u) {
		return TINYML_SLOT_REGION;
	}
	if (room < sizeof(*pack) || memcmp(pack->magic, PACK_MAGIC, sizeof(pack->magic)) != 0) {
		return 0; /* an image */
	}
	if (pack->images > (room - sizeof(*pack)) / sizeof(*entries)) {
		return TINYML_SLOT_BOUNDS;
	}
	for (uint32_t i = 0; i < pack->images; i++) {
		const uint32_t position = entries[i].position, size = entries[i].bytes;
		bool fits = false;
		uint32_t core;

		if (position > room || size > room - position) {
			return TINYML_SLOT_BOUNDS;
		}
		core = pack_core(file + position, size, &fits);
		if (fits && core >= most) {
			most = core;
			*start = file + position;
			*bytes = size;
			error = 0;
		}
	}
	return error;
}
