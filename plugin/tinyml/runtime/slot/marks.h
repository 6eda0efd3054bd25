/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What has become of the image in a slot, as marks at the end of the slot. Each is written once, in
 * flash that was erased with the slot; a mark that power failure left half written is no mark, and
 * not blank either. */

#ifndef TINYML_SLOT_MARKS_H_
#define TINYML_SLOT_MARKS_H_

#include <tinyml/slots.h>

enum mark {
	MARK_COMPLETE,                                       /* received and checked */
	MARK_TRIED,                                          /* once for each trial */
	MARK_CONFIRMED = MARK_TRIED + TINYML_SLOT_TRIALS,    /* again where writing one failed */
	MARK_REJECTED = MARK_CONFIRMED + TINYML_SLOT_TRIALS, /* do not try again */
	MARK_COUNT,
};

/** The bytes at the end of a slot that marks take. */
uint32_t marks_bytes(const struct tinyml_slot_region *region);

/** The bytes before them that an image may take. */
uint32_t marks_room(const struct tinyml_slot_region *region);

/** Nothing was written there since the slot was erased. */
bool mark_is_blank(const struct tinyml_slot_region *region, unsigned int mark);

/** Completely written. */
bool mark_is_set(const struct tinyml_slot_region *region, unsigned int mark);

bool is_confirmed(const struct tinyml_slot_region *region);

/** The number of trials, including those for which a power failure left half a mark. */
unsigned int trials(const struct tinyml_slot_region *region);

/** Write a mark: the first blank one of `count`. */
int set_mark(const struct tinyml_slot_region *region, unsigned int mark, unsigned int count);

/** 0, or TINYML_SLOT_VERSION if the image in a region is not newer than the model in use. */
int tinyml_slots_newer(const struct tinyml_slots *slots, const struct tinyml_slot_region *region);

#endif /* TINYML_SLOT_MARKS_H_ */
