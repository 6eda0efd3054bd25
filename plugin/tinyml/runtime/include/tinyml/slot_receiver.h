/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Updates of models in slots over the protocol of <tinyml/host.h>, for `slot` of its port. `tinyml
 * deploy` is the other side. A request is one byte, one of tinyml_receiver_command, and its
 * arguments; an answer is one of tinyml_slot_error without its sign (1 byte), and results if that
 * is 0. Integers are little endian.
 *
 *	INFO                        -> address (4), bytes (4), version (8), on trial (1), name
 *	BEGIN bytes (4), resume (1) -> done (4), CRC-32 (4)
 *	DATA  offset (4), bytes     -> done (4)
 *	FINISH                      -> nothing
 *	OPEN                        -> as INFO
 *	CONFIRM, REJECT             -> nothing
 *	PLAYER                      -> core (4), kernels (1 bit each, the first in the lowest)
 *
 * Address and bytes are those of the slot that is free: it decides which image of a pack is sent.
 * Of a pack without code, core decides: what the player's images may need, as TINYML_PLAYER_CORE.
 * Without a player, the answer is TINYML_SLOT_ABI.
 */

#ifndef TINYML_SLOT_RECEIVER_H_
#define TINYML_SLOT_RECEIVER_H_

#include <tinyml/slots.h>

#ifdef __cplusplus
extern "C" {
#endif

enum tinyml_receiver_command {
	TINYML_RECEIVER_INFO = 1,
	TINYML_RECEIVER_BEGIN,
	TINYML_RECEIVER_DATA,
	TINYML_RECEIVER_FINISH,
	TINYML_RECEIVER_OPEN,
	TINYML_RECEIVER_CONFIRM,
	TINYML_RECEIVER_REJECT,
	TINYML_RECEIVER_PLAYER,
};

/** The least room for an answer. Names that do not fit are cut off. */
#define TINYML_RECEIVER_ROOM 32

struct tinyml_receiver {
	struct tinyml_slots *slots;
	struct tinyml_slot *slot;
	struct tinyml_update update;
};

/** Execute a request; returns the bytes of the answer, at most @a room. */
size_t tinyml_receiver_request(struct tinyml_receiver *receiver, const uint8_t *request,
			       size_t bytes, uint8_t *answer, size_t room);

/* The parts of it that other protocols share. */

/** A part of the image that belongs at @a offset. The same part again changes nothing: the sender
 * may not have seen the answer. */
int tinyml_receiver_take(struct tinyml_receiver *receiver, uint32_t offset, const uint8_t *data,
			 uint32_t bytes);

/** The kernels of a player, one bit each, the first in the lowest; returns the bytes, at most
 * @a room. */
size_t tinyml_receiver_kernels(const struct tinyml_slot_player *player, uint8_t *bits, size_t room);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_SLOT_RECEIVER_H_ */
