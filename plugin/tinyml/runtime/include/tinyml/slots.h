/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Two slots: a model in use, and room for the next one.
 *
 *	static struct tinyml_slots slots = {.region = {{...}, {...}}};
 *
 *	tinyml_slots_open(&slots, &digits);         the newest model that is fit to use
 *	...
 *	tinyml_update_begin(&update, &slots, bytes, false);
 *	tinyml_update_write(&update, data, count);  in order, in parts of any size
 *	tinyml_update_finish(&update);              checks all of it; the next open tries it
 *	...
 *	tinyml_slots_open(&slots, &digits);         opens the new model, on trial
 *	tinyml_slots_confirm(&slots);               keeps it; without, a later open goes back
 *
 * Whenever power fails, one of the two slots has a whole model that was confirmed before, or is on
 * trial for the first time.
 */

#ifndef TINYML_SLOTS_H_
#define TINYML_SLOTS_H_

#include <tinyml/slot.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The largest unit that flash is written in; its buffer is part of struct tinyml_update. A power
 * of two, and the same for all files of a firmware. */
#ifndef TINYML_FLASH_WRITE_MAX
#ifdef CONFIG_TINYML_SLOTS_WRITE_BYTES
#define TINYML_FLASH_WRITE_MAX CONFIG_TINYML_SLOTS_WRITE_BYTES
#else
#define TINYML_FLASH_WRITE_MAX 32
#endif
#endif

/** How often a new model may be tried without being confirmed: power may fail during a trial. */
#define TINYML_SLOT_TRIALS 3

/** A buffered writer of the system for the image of an update, such as Zephyr's stream flash. It is
 * never given more than the rest of its buffer; `flush`: write what is there, even if it is less.
 */
struct tinyml_flash_stream {
	int (*begin)(void *context, uint32_t offset); /* where an erase unit starts; 0 on success */
	int (*append)(void *context, const void *data, uint32_t bytes, bool flush);
	uint32_t bytes; /* of the buffer: whole write units that divide an erase unit */
};

/**
 * NOR flash: erased bytes are 0xff. Offsets count from the start of a region. When `erase` and
 * `write` return, plain reads must see the result: where a data cache is in between, they
 * invalidate it, as the flash drivers of vendors do.
 */
struct tinyml_flash {
	int (*erase)(void *context, uint32_t offset, uint32_t bytes); /* 0 on success */
	int (*write)(void *context, uint32_t offset, const void *data, uint32_t bytes);
	void *context;
	uint32_t erase_bytes; /* the unit that is erased at once; regions consist of whole ones */
	uint32_t write_bytes; /* the unit that is written at once, and once after each erase */
	const struct tinyml_flash_stream *stream; /* NULL: images, too, are written with `write` */
	/** The bytes of the erase unit that starts at an offset, where they differ (STM32F4, F7).
	 * NULL: all have erase_bytes. */
	uint32_t (*unit)(void *context, uint32_t offset);
	/** For flash that faults when the core reads it erased or half written (LPC55): like a
	 * plain read, with 0xff for erased bytes; not 0 if it cannot be read. Marks then have erase
	 * units of their own, and an image is read only after all of it was written. NULL: plain
	 * reads. */
	int (*read)(void *context, uint32_t offset, void *data, uint32_t bytes);
};

struct tinyml_slots {
	struct tinyml_slot_region region[2];
	const struct tinyml_slot_trust *trust; /* NULL: checksums only */
	struct tinyml_slot *slot;              /* what was opened last */
	int8_t active;                         /* the region it came from, -1: none */
	bool on_trial;                         /* and not confirmed yet */
	uint32_t updates;                      /* begun since the start */
};

/**
 * Open the newest model that is fit to use: one that was confirmed, or one that was updated and has
 * trials left, after its self-test. Only what passes every check counts. A new model that fails is
 * not tried again.
 *
 * @return 0; TINYML_SLOT_NONE; or TINYML_SLOT_REGION, before anything is touched, if a region is
 * without flash, or its flash is not described correctly or not supported.
 */
int tinyml_slots_open(struct tinyml_slots *slots, struct tinyml_slot *slot);

/** Keep the model in use. Nothing happens if it was kept before. */
int tinyml_slots_confirm(struct tinyml_slots *slots);

/** Give up the model on trial and go back: opens the model before it, or none (`active` is -1). */
int tinyml_slots_reject(struct tinyml_slots *slots);

/** The region that an update goes to, 0 or 1: the one that is not in use. Without a model in use,
 * rather one that was never confirmed. Negative: TINYML_SLOT_BUSY or TINYML_SLOT_ORDER. */
int tinyml_slots_free(const struct tinyml_slots *slots);

/** What is in a region. */
enum tinyml_region_state {
	TINYML_REGION_FREE, /* nothing, or something that is not complete */
	TINYML_REGION_DUE,  /* received: the next tinyml_slots_open() tries it, or it is on trial */
	TINYML_REGION_KEPT, /* confirmed */
	TINYML_REGION_REJECTED, /* failed, or was given up */
};

/** What is in region @a index, and unless it is free, the version that its header states. */
enum tinyml_region_state tinyml_slots_state(const struct tinyml_slots *slots, int index,
					    uint32_t version[2]);

struct tinyml_update {
	struct tinyml_slots *slots;
	const struct tinyml_slot_region *region;
	void (*progress)(struct tinyml_update *update); /* after each write to flash; may be NULL */
	void *context;                                  /* for progress */
	uint32_t bytes;                                 /* of the whole image */
	uint32_t done;                                  /* received so far */
	uint32_t number;                                /* which of all updates */
	uint8_t buffer[TINYML_FLASH_WRITE_MAX];
};

/**
 * Start to receive an image of this size into the slot that is not in use. An update that was
 * under way ends: its next call returns TINYML_SLOT_OVERTAKEN. Set `progress` before. To resume,
 * `update->done` is the number of bytes that an interrupted update has left, and
 * tinyml_update_crc32() what: compare it with the start of the image, then send the rest.
 */
int tinyml_update_begin(struct tinyml_update *update, struct tinyml_slots *slots, uint32_t bytes,
			bool resume);

/** The CRC-32 of what is there. */
uint32_t tinyml_update_crc32(const struct tinyml_update *update);

/** The next part of the image. */
int tinyml_update_write(struct tinyml_update *update, const void *data, uint32_t bytes);

/** The last part was written: check all that tinyml_slot_open() checks, and that it is newer than
 * the model in use; then let the next tinyml_slots_open() try it. */
int tinyml_update_finish(struct tinyml_update *update);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_SLOTS_H_ */
