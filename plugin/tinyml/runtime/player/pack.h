/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The layout of a .tmodel file: this, entries, images. */

#ifndef TINYML_PLAYER_PACK_H_
#define TINYML_PLAYER_PACK_H_

#include <stdint.h>

#define PACK_MAGIC "TMODEL\0\1"

struct pack {
	char magic[8];
	uint32_t images;
};

struct pack_entry {
	char name[24];
	uint32_t address;
	uint32_t position;
	uint32_t bytes;
};

#endif /* TINYML_PLAYER_PACK_H_ */
