/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * The two slots of this device, which are partitions of its flash. Needs CONFIG_TINYML_SLOTS and
 *
 *	/ {
 *		chosen {
 *			tinyml,slot-a = &model_a;
 *			tinyml,slot-b = &model_b;
 *		};
 *	};
 */

#ifndef TINYML_DEVICE_SLOTS_H_
#define TINYML_DEVICE_SLOTS_H_

#include <tinyml/slots.h>
#ifdef CONFIG_TINYML_SLOTS_WATCH
#include <tinyml/slot_watch.h>
#endif
#include <zephyr/app_memory/app_memdomain.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The model in use. Its memory is CONFIG_TINYML_SLOTS_ARENA_BYTES and
 * CONFIG_TINYML_SLOTS_STATE_BYTES. */
extern struct tinyml_slot tinyml_slot_model;

/** Where it comes from. Ready for tinyml_slots_open() when main() starts. */
extern struct tinyml_slots tinyml_device_slots;

#ifdef CONFIG_TINYML_SLOTS_WATCH
/** What it sees and decides. It is counted after tinyml_slot_watch_open(&tinyml_slot_seen). */
extern struct tinyml_slot_watch tinyml_slot_seen;
#endif

#ifdef CONFIG_USERSPACE
/** tinyml_slot_model itself, read-only, for the memory domain of threads in user mode that run it.
 * They also need tinyml_partition and tinyml_grant() (<tinyml/claim.h>). */
extern struct k_mem_partition tinyml_slot_partition;
#endif

/** Forget what is open, as a restart does. */
void tinyml_device_slots_restart(void);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_DEVICE_SLOTS_H_ */
