/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * A pack that a server offers, read in parts: what has become of it on this device, and which part
 * of the file the free slot needs. For clients that fetch packs by themselves, such as hawkBit's.
 * Nothing about it is stored: the slots themselves remember, through any reset.
 *
 *	struct tinyml_offer offer;
 *	int error = tinyml_slots_offer(slots, slot, &(struct tinyml_pack_file){read, server, size},
 *				       &offer);
 *
 *	if (error == 0 && offer.state == TINYML_OFFER_NEW) {
 *		error = tinyml_offer_begin(&offer, slots, &update);
 *		... the file from offer.position + update.done on to tinyml_update_write(),
 *		    offer.bytes - update.done of it
 *	}
 */

#ifndef TINYML_SLOT_OFFER_H_
#define TINYML_SLOT_OFFER_H_

#include <tinyml/pack_source.h>
#include <tinyml/slots.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The bytes with which an image begins, and by which it is known. */
#define TINYML_OFFER_START 112

enum tinyml_offer_state {
	TINYML_OFFER_NEW,      /* not on this device */
	TINYML_OFFER_RECEIVED, /* the next tinyml_slots_open() tries it */
	TINYML_OFFER_ON_TRIAL,
	TINYML_OFFER_KEPT,     /* in use, and confirmed */
	TINYML_OFFER_REJECTED, /* failed, or was given up */
};

struct tinyml_offer {
	enum tinyml_offer_state state;
	uint32_t version[2];
	uint32_t position; /* of the image for the free slot in the file; of one that is new */
	uint32_t bytes;
	uint8_t start[TINYML_OFFER_START];
};

/**
 * Read the start of a pack, and find it in the slots. tinyml_slots_open() was called before.
 *
 * @return 0; TINYML_SLOT_VERSION if it is older than the model in use; TINYML_SLOT_BUSY if another
 * model is on trial; TINYML_SLOT_ADDRESS or TINYML_SLOT_CORE_TOO_SMALL if nothing in it is for this
 * device; TINYML_SLOT_MAGIC, TINYML_SLOT_BOUNDS for a file that is no pack, or cut off;
 * TINYML_SLOT_FLASH if it cannot be read
 */
int tinyml_slots_offer(const struct tinyml_slots *slots, const struct tinyml_slot *slot,
		       const struct tinyml_pack_file *file, struct tinyml_offer *offer);

/** Begin to receive what is new, or go on if the slot has the start of the same image. */
int tinyml_offer_begin(const struct tinyml_offer *offer, struct tinyml_slots *slots,
		       struct tinyml_update *update);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_SLOT_OFFER_H_ */
