/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Two copies in flash of what a model has learnt, for firmware without an operating system.
 *
 *	static const struct tinyml_adapt_store store = {.copy = {{...}, {...}}};
 *
 *	tinyml_adapt_load(&store, &gesture_adapter.adapt);   after a restart
 *	...
 *	gesture_run();
 *	gesture_learn(label);
 *	tinyml_adapt_save(&store, &gesture_adapter.adapt);
 *
 * A save writes the older copy and never touches the newer one: wherever power fails, the next load
 * finds what was learnt before or after this save, and nothing between them. Both copies have to
 * be in erase units of their own. Zephyr has CONFIG_TINYML_ADAPT_SETTINGS for the same purpose.
 */

#ifndef TINYML_ADAPT_STORE_H_
#define TINYML_ADAPT_STORE_H_

#include <tinyml/adapt.h>
#include <tinyml/slots.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes that a copy needs for values of this size (NAME_LEARNT_BYTES), in flash that is written
 * in units of `write_bytes`; rounded up to erase units by whoever divides the flash. */
#define TINYML_ADAPT_STORE_BYTES(learnt_bytes, write_bytes)                                        \
	(((learnt_bytes) + (write_bytes) - 1u) / (write_bytes) * (write_bytes) +                   \
	 (16u + (write_bytes) - 1u) / (write_bytes) * (write_bytes))

/** Two regions of flash: whole erase units, with `flash` set. `address` is not used. */
struct tinyml_adapt_store {
	struct tinyml_slot_region copy[2];
};

/**
 * Store what was learnt, unless it is stored already.
 *
 * @return 0; TINYML_ADAPT_EWORSE if it fails the self-test; TINYML_ADAPT_EFLASH if the flash
 * reports an error; TINYML_EINVAL, before anything is touched, if the regions are too small or
 * their flash is not described correctly. What was stored before is still there after an error.
 */
int tinyml_adapt_save(const struct tinyml_adapt_store *store, const struct tinyml_adapt *adapt);

/**
 * Take back what was stored last.
 *
 * @return 0; TINYML_ADAPT_EOTHER if nothing of this model is stored; TINYML_EINVAL as for a save.
 * After an error, the model is as the factory left it.
 */
int tinyml_adapt_load(const struct tinyml_adapt_store *store, const struct tinyml_adapt *adapt);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_ADAPT_STORE_H_ */
