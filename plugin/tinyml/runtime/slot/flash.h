/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The flash of a region: how it is divided, and reads that never fault. */

#ifndef TINYML_SLOT_FLASH_H_
#define TINYML_SLOT_FLASH_H_

#include <tinyml/slots.h>

/** Everything about the flash is what the code relies on. Nothing is read or written. */
bool flash_is_sane(const struct tinyml_slot_region *region);

/** What images are written in at once. */
uint32_t flash_write_unit(const struct tinyml_flash *flash);

/** The start of the erase unit that an offset is in. */
uint32_t flash_unit_start(const struct tinyml_slot_region *region, uint32_t offset);

/** Erase whole units. */
int flash_erase(const struct tinyml_slot_region *region, uint32_t from, uint32_t to);

/** Read anything, erased or not; not 0 if that is impossible. */
int flash_read(const struct tinyml_slot_region *region, uint32_t offset, void *data,
	       uint32_t bytes);

/** Readable, and nothing but 0xff; @a bytes is a multiple of FLASH_CHUNK. */
bool flash_is_blank(const struct tinyml_slot_region *region, uint32_t offset, uint32_t bytes);

/** Marks and erase units consist of so many bytes, or several times as many. */
#define FLASH_CHUNK 16u

#endif /* TINYML_SLOT_FLASH_H_ */
