/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Two copies in flash of what was learnt. A copy is the learnt bytes and, in a write unit of its
 * own behind them, a seal, which is written last. */

#include <tinyml/adapt_store.h>

#include <stddef.h>
#include <string.h>

#include "crc.h"

/* The number of a save, and the copy that it seals. */
struct seal {
	uint32_t magic;
	uint32_t number;
	uint32_t crc;   /* of the learnt bytes, as their header has it */
	uint32_t check; /* CRC-32 of the members before */
};

#define SEAL_MAGIC 0x4c414553u /* "SEAL" */

_Static_assert(sizeof(struct seal) == 16u, "<tinyml/adapt_store.h> has its size");

static uint32_t store_rounded(uint32_t bytes, uint32_t unit)
{
	return (bytes + unit - 1u) / unit * unit;
}

static uint32_t store_unit(const struct tinyml_flash *flash, uint32_t offset)
{
	return flash->unit != NULL ? flash->unit(flash->context, offset) : flash->erase_bytes;
}

static bool store_is_sane(const struct tinyml_adapt_store *store, uint32_t bytes)
{
	for (uint32_t i = 0; i < 2u; i++) {
		const struct tinyml_slot_region *const copy = &store->copy[i];
		const struct tinyml_flash *const flash = copy->flash;
		uint32_t write;

		if (flash == NULL || flash->erase == NULL || flash->write == NULL ||
		    (flash->read == NULL && copy->memory == NULL)) {
			return false;
		}
		write = flash->write_bytes;
		if (write == 0u || write > TINYML_FLASH_WRITE_MAX || (write & (write - 1u)) != 0u ||
		    copy->bytes < TINYML_ADAPT_STORE_BYTES(bytes, write)) {
			return false;
		}
		for (uint32_t at = 0, unit; at < copy->bytes; at += unit) {
			unit = store_unit(flash, at);
			if (unit == 0u || unit % write != 0u || unit > copy->bytes - at) {
				return false;
			}
		}
	}
	return true;
}

static int store_read(const struct tinyml_slot_region *copy, uint32_t offset, void *data,
		      uint32_t bytes)
{
	if (copy->flash->read != NULL) {
		return copy->flash->read(copy->flash->context, offset, data, bytes);
	}
	memcpy(data, (const uint8_t *)copy->memory + offset, bytes);
	return 0;
}

static uint32_t store_seal_check(const struct seal *seal)
{
	return ~crc_more(UINT32_MAX, seal, offsetof(struct seal, check));
}

/* Whether a copy is whole, and of this model. Its seal is read then. */
static bool store_is_whole(const struct tinyml_slot_region *copy, const struct tinyml_adapt *adapt,
			   struct seal *seal)
{
	const uint32_t head = sizeof(struct tinyml_adapt_header);
	struct tinyml_adapt_header header;
	uint32_t crc = UINT32_MAX;
	uint8_t part[16];

	if (store_read(copy, store_rounded(adapt->bytes, copy->flash->write_bytes), seal,
		       sizeof(*seal)) != 0 ||
	    seal->magic != SEAL_MAGIC || seal->check != store_seal_check(seal) ||
	    store_read(copy, 0, &header, head) != 0 || header.crc != seal->crc ||
	    header.kind != adapt->kind ||
	    memcmp(header.digest, adapt->digest, sizeof(header.digest)) != 0) {
		return false;
	}
	for (uint32_t at = sizeof(header.crc), count; at < adapt->bytes; at += count) {
		count = adapt->bytes - at < sizeof(part) ? adapt->bytes - at : sizeof(part);
		if (store_read(copy, at, part, count) != 0) {
			return false;
		}
		crc = crc_more(crc, part, count);
	}
	return ~crc == header.crc;
}

/* The copy that was written last, or -1. */
static int store_newest(const struct tinyml_adapt_store *store, const struct tinyml_adapt *adapt,
			struct seal *newest)
{
	int found = -1;

	for (int i = 0; i < 2; i++) {
		struct seal seal;

		if (store_is_whole(&store->copy[i], adapt, &seal) &&
		    (found < 0 || (int32_t)(seal.number - newest->number) > 0)) {
			found = i;
			*newest = seal;
		}
	}
	return found;
}

/* Write any number of bytes, the last unit filled up as if it were erased. */
static int store_write(const struct tinyml_flash *flash, uint32_t offset, const void *data,
		       uint32_t bytes)
{
	const uint32_t unit = flash->write_bytes;
	const uint8_t *const from = data;
	uint8_t buffer[TINYML_FLASH_WRITE_MAX];

	for (uint32_t at = 0; at < bytes; at += unit) {
		const uint32_t count = bytes - at < unit ? bytes - at : unit;

		memset(buffer, 0xff, unit);
		memcpy(buffer, from + at, count);
		if (flash->write(flash->context, offset + at, buffer, unit) != 0) {
			return TINYML_ADAPT_EFLASH;
		}
	}
	return 0;
}

int tinyml_adapt_save(const struct tinyml_adapt_store *store, const struct tinyml_adapt *adapt)
{
	const struct tinyml_slot_region *copy;
	struct seal seal = {.number = 0};
	const void *learnt;
	size_t bytes;
	int newest, status;

	if (!store_is_sane(store, adapt->bytes)) {
		return TINYML_EINVAL;
	}
	learnt = tinyml_adapt_learnt(adapt, &bytes);
	if (learnt == NULL) {
		return TINYML_ADAPT_EWORSE;
	}
	newest = store_newest(store, adapt, &seal);
	if (newest >= 0 && seal.crc == adapt->learnt->crc) {
		return 0;
	}
	copy = &store->copy[newest == 0 ? 1 : 0];
	for (uint32_t at = 0, unit; at < copy->bytes; at += unit) {
		unit = store_unit(copy->flash, at);
		if (copy->flash->erase(copy->flash->context, at, unit) != 0) {
			return TINYML_ADAPT_EFLASH;
		}
	}
	status = store_write(copy->flash, 0, learnt, adapt->bytes);
	if (status == 0) {
		seal.magic = SEAL_MAGIC;
		seal.number++;
		seal.crc = adapt->learnt->crc;
		seal.check = store_seal_check(&seal);
		status = store_write(copy->flash,
				     store_rounded(adapt->bytes, copy->flash->write_bytes), &seal,
				     sizeof(seal));
	}
	return status == 0 && !store_is_whole(copy, adapt, &seal) ? TINYML_ADAPT_EFLASH : status;
}

int tinyml_adapt_load(const struct tinyml_adapt_store *store, const struct tinyml_adapt *adapt)
{
	const bool sane = store_is_sane(store, adapt->bytes);
	struct seal seal;
	int newest;

	tinyml_adapt_factory(adapt);
	if (!sane) {
		return TINYML_EINVAL;
	}
	newest = store_newest(store, adapt, &seal);
	if (newest < 0) {
		return TINYML_ADAPT_EOTHER;
	}
	if (store_read(&store->copy[newest], 0, adapt->learnt, adapt->bytes) != 0 ||
	    tinyml_adapt_accepts(adapt, adapt->learnt, adapt->bytes) != 0) {
		tinyml_adapt_factory(adapt);
		return TINYML_ADAPT_EOTHER;
	}
	return 0;
}
