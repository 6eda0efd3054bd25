/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Packs in Zephyr's file systems: CONFIG_TINYML_PLAYER and CONFIG_FILE_SYSTEM.
 *
 *	static uint8_t memory[16384] __aligned(TINYML_PLAYER_ALIGNMENT);
 *	int error = tinyml_player_open_file(&player, "/lfs/digits.tmodel", memory, sizeof(memory));
 */

#ifndef TINYML_PLAYER_FILE_H_
#define TINYML_PLAYER_FILE_H_

#include <tinyml/pack_file.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Read the image for this core of a .tmodel file to memory, check it and open it. The file can be
 * replaced or removed afterwards; the memory belongs to the model as long as it is open.
 *
 * @return as tinyml_player_load(); TINYML_SLOT_EMPTY if there is no such file
 */
int tinyml_player_open_file(struct tinyml_player *player, const char *path, void *memory,
			    uint32_t room);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_PLAYER_FILE_H_ */
