/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/slot_offer.h>

#include <string.h>

#include "../player/pack.h"
#include "flash.h"
#include "format.h"
#include "marks.h"

struct offer_start {
	struct container_header header;
	struct descriptor descriptor;
};

_Static_assert(sizeof(struct offer_start) == TINYML_OFFER_START, "the header and the descriptor");

static int offer_read(const struct tinyml_pack_file *file, uint32_t position, void *data,
		      uint32_t bytes)
{
	if (position > file->bytes || bytes > file->bytes - position) {
		return TINYML_SLOT_BOUNDS;
	}
	return file->read(file->context, position, data, bytes) == 0 ? 0 : TINYML_SLOT_FLASH;
}

/* An image that a player of this core can play, and better than the one with @a most. */
static bool offer_is_better(const struct tinyml_slot *slot, const struct offer_start *start,
			    uint32_t most)
{
	const uint32_t core = start->descriptor.core;

	return slot->player != NULL && start->descriptor.interface == TINYML_PLAYER_INTERFACE &&
	       (core & ~slot->player->core) == 0u && core >= most;
}

/* The start of an image of the pack, and where it is. */
static int offer_read_image(const struct tinyml_pack_file *file, uint32_t index,
			    struct pack_entry *entry, struct offer_start *start)
{
	int error;

	if (index > file->bytes / sizeof(*entry)) { /* before the product can overflow */
		return TINYML_SLOT_BOUNDS;
	}
	error = offer_read(file, (uint32_t)(sizeof(struct pack) + index * sizeof(*entry)), entry,
			   sizeof(*entry));
	error = error != 0 ? error : offer_read(file, entry->position, start, sizeof(*start));
	if (error != 0) {
		return error;
	}
	if (entry->bytes > file->bytes - entry->position) {
		return TINYML_SLOT_BOUNDS;
	}
	return start->header.magic == MCUBOOT_MAGIC ? 0 : TINYML_SLOT_MAGIC;
}

/* How many images there are, and the start of the first: all are of the same model. */
static int offer_read_first(const struct tinyml_pack_file *file, uint32_t *images,
			    struct offer_start *start)
{
	struct pack_entry entry;
	struct pack pack;
	int error = offer_read(file, 0, &pack, sizeof(pack));

	if (error != 0) {
		return error;
	}
	*images = pack.images;
	if (memcmp(pack.magic, PACK_MAGIC, sizeof(pack.magic)) != 0 || pack.images == 0u) {
		return TINYML_SLOT_MAGIC;
	}
	return offer_read_image(file, 0, &entry, start);
}

/* Which image is for the slot at @a address. */
static int offer_choose(const struct tinyml_slot *slot, const struct tinyml_pack_file *file,
			uint32_t images, uint32_t address, struct tinyml_offer *offer)
{
	int found = slot->player != NULL ? TINYML_SLOT_CORE_TOO_SMALL : TINYML_SLOT_ADDRESS;
	uint32_t most = 0;

	for (uint32_t i = 0; i < images; i++) {
		struct offer_start start;
		struct pack_entry entry;
		bool fits;
		int error = offer_read_image(file, i, &entry, &start);

		if (error != 0) {
			return error;
		}
		if (start.descriptor.interface == TINYML_PLAYER_INTERFACE) {
			fits = offer_is_better(slot, &start, most);
			most = fits ? start.descriptor.core : most;
		} else {
			fits = entry.address == address;
		}
		if (fits) {
			memcpy(offer->start, &start, sizeof(start));
			offer->position = entry.position;
			offer->bytes = entry.bytes;
			found = 0;
		}
	}
	return found;
}

static bool offer_is_same(const struct offer_start *a, const struct offer_start *b)
{
	return b->header.magic == MCUBOOT_MAGIC &&
	       memcmp(a->header.version, b->header.version, sizeof(a->header.version)) == 0 &&
	       memcmp(a->descriptor.sha256, b->descriptor.sha256, sizeof(a->descriptor.sha256)) ==
		       0;
}

/* The slot that has the model, and what has become of it; -1: none. */
static int offer_find(const struct tinyml_slots *slots, const struct offer_start *start,
		      enum tinyml_region_state *state)
{
	for (int i = 0; i < 2; i++) {
		struct offer_start there;
		uint32_t version[2];

		*state = tinyml_slots_state(slots, i, version);
		if (*state != TINYML_REGION_FREE &&
		    flash_read(&slots->region[i], 0, &there, sizeof(there)) == 0 &&
		    offer_is_same(start, &there)) {
			return i;
		}
	}
	return -1;
}

int tinyml_slots_offer(const struct tinyml_slots *slots, const struct tinyml_slot *slot,
		       const struct tinyml_pack_file *file, struct tinyml_offer *offer)
{
	struct tinyml_slot_region region = {0};
	enum tinyml_region_state state;
	struct offer_start start;
	uint32_t images;
	int error, index, unused;

	memset(offer, 0, sizeof(*offer));
	error = offer_read_first(file, &images, &start);
	if (error != 0) {
		return error;
	}
	offer->version[0] = start.header.version[0];
	offer->version[1] = start.header.version[1];
	index = offer_find(slots, &start, &state);
	if (index >= 0 && state == TINYML_REGION_REJECTED) {
		offer->state = TINYML_OFFER_REJECTED;
		return 0;
	}
	if (index >= 0 && index == slots->active) {
		offer->state = slots->on_trial ? TINYML_OFFER_ON_TRIAL : TINYML_OFFER_KEPT;
		return 0;
	}
	if (index >= 0 && state == TINYML_REGION_DUE) {
		offer->state = TINYML_OFFER_RECEIVED;
		return 0;
	}
	unused = tinyml_slots_free(slots);
	if (unused < 0) {
		return unused;
	}
	region.memory = &start;
	error = tinyml_slots_newer(slots, &region);
	return error != 0 ? error
			  : offer_choose(slot, file, images, slots->region[unused].address, offer);
}

int tinyml_offer_begin(const struct tinyml_offer *offer, struct tinyml_slots *slots,
		       struct tinyml_update *update)
{
	const int unused = tinyml_slots_free(slots);
	uint8_t there[TINYML_OFFER_START];
	bool resume;

	if (unused < 0) {
		return unused;
	}
	resume = slots->region[unused].bytes >= sizeof(there) &&
		 flash_is_sane(&slots->region[unused]) &&
		 flash_read(&slots->region[unused], 0, there, sizeof(there)) == 0 &&
		 memcmp(there, offer->start, sizeof(there)) == 0;
	return tinyml_update_begin(update, slots, offer->bytes, resume);
}
