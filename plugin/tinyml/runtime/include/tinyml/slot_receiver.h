/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Updates over anything that carries lines of text: a UART, a shell, a socket. `tinyml deploy` is
 * the other side. All numbers are hexadecimal; each answer is one line.
 *
 *	info                     -> @tinyml ok ADDRESS BYTES VERSION BUILD TRIAL NAME
 *	begin BYTES RESUME       -> @tinyml ok DONE CRC32
 *	data OFFSET BYTES CRC32  -> @tinyml ok DONE
 *	finish                   -> @tinyml ok
 *	open                     -> @tinyml ok, then as info
 *	confirm, reject          -> @tinyml ok
 *	                         -> @tinyml error CODE, where CODE is one of tinyml_slot_error,
 * without sign
 *
 * ADDRESS and BYTES are those of the slot that is free: it decides which image of a pack is sent.
 */

#ifndef TINYML_SLOT_RECEIVER_H_
#define TINYML_SLOT_RECEIVER_H_

#include <tinyml/slots.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The most bytes of an image in one line; lines are at most twice that and 40 characters long. */
#define TINYML_RECEIVER_DATA 96

/** Room for an answer. */
#define TINYML_RECEIVER_ANSWER 112

struct tinyml_receiver {
	struct tinyml_slots *slots;
	struct tinyml_slot *slot;
	struct tinyml_update update;
};

/** Execute a line; the answer, without a line end, is put into @a answer. */
void tinyml_receiver_line(struct tinyml_receiver *receiver, const char *line,
			  char answer[TINYML_RECEIVER_ANSWER]);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_SLOT_RECEIVER_H_ */
