/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Packs in files: of a .tmodel file with images for many cores, only the one for this core is read
 * into RAM. The file is whatever can be read at a position: a file system, a flash without
 * addresses, a server that sends ranges.
 *
 *	static uint8_t memory[16384] __attribute__((aligned(TINYML_PLAYER_ALIGNMENT)));
 *	int error = tinyml_player_load(&player, &(struct tinyml_pack_file){read, file, size},
 * memory, sizeof(memory));
 */

#ifndef TINYML_PACK_FILE_H_
#define TINYML_PACK_FILE_H_

#include <tinyml/pack_source.h>
#include <tinyml/player.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Where the image is that makes most of this core. A file that is an image, without others beside
 * it, is taken as it is.
 *
 * @return 0, TINYML_SLOT_CORE_TOO_SMALL without an image for this core, TINYML_SLOT_BOUNDS for a
 * file that is cut off, or TINYML_SLOT_FLASH if it cannot be read
 */
int tinyml_pack_find(const struct tinyml_pack_file *file, uint32_t *position, uint32_t *bytes);

/**
 * Read that image to @a memory, check it and open it, as tinyml_player_open() does. It stays there
 * as long as the model is open.
 *
 * @return 0, TINYML_SLOT_REGION if it takes more than @a room or the memory is not aligned, or
 * another error; then no model is open.
 */
int tinyml_player_load(struct tinyml_player *player, const struct tinyml_pack_file *file,
		       void *memory, uint32_t room);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_PACK_FILE_H_ */
