/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A device with two slots, and what arrives for it. */

#ifndef TEST_DEVICE_H_
#define TEST_DEVICE_H_

#include <tinyml/device_slots.h>

#include "images.h"

/** What one slot gets of a pack. */
struct arriving {
	const uint8_t *content;
	uint32_t bytes;
};

/** The image of a pack for a slot. */
struct arriving image_of(enum pack pack, int slot);

/** Erase both slots and start. */
void fresh_device(void);

/** As after a power failure: forget everything that is not in flash, then open. */
int start(void);

/** Send a pack, going on where an interrupted update stopped; finish it if all of it was sent. */
int send(enum pack pack, uint32_t stop_at);
#define EVERYTHING UINT32_MAX

/** Send a pack, try it, confirm it. */
int bring(enum pack pack);

/** The major version of the model in use; 0: none. */
unsigned int version(void);

/** Whether the model in use computes what it should; on native_sim, whether it says that it cannot.
 */
bool computes(void);

/** What the last send() went on from, and how often its progress was reported. */
extern uint32_t resumed_at, reports;

/** Called after each report, unless it is NULL. */
extern void (*watch)(void);

#endif /* TEST_DEVICE_H_ */
