/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Updates, step by step and with power failing at every write and erase. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "marks.h" /* of runtime/slot */
#include "slot_sim.h"

#define TEARS 5

static uint8_t *after_old; /* flash with the old model confirmed */

void cuts(const struct file *old, const struct file *new, const struct file *bad)
{
	long count[3] = {0, 0, 0};

	memset(memory, 0xff, 2u * slot_bytes);
	after_old = malloc(2u * slot_bytes);
	cut_at = 0;
	power_on();
	demand(tinyml_slots_open(&slots, &model) == TINYML_SLOT_NONE, "a model in erased flash");
	bring(old, false);
	memcpy(after_old, memory, 2u * slot_bytes);
	for (tear = 0; tear < TEARS; tear++) {
		/* 0: an update; 1: an update over an older model; 2: one that fails its self-test
		 */
		for (int kind = 0; kind < 3; kind++) {
			volatile bool finished = false;

			for (cut_at = 1; !finished; cut_at++) {
				volatile long second;

				memcpy(memory, after_old, 2u * slot_bytes);
				power_on();
				demand(tinyml_slots_open(&slots, &model) == 0,
				       "the old model is gone");
				if (kind ==
				    1) { /* both slots full: old and new; then old's successor */
					long wanted = cut_at;

					cut_at = 0;
					bring(new, false);
					cut_at = wanted;
				}
				operation = 0;
				if (setjmp(power_failure) == 0) {
					if (kind == 2) {
						demand(send(bad, true) == 0, "the update fails");
						demand(tinyml_slots_open(&slots, &model) == 0 &&
							       answer() == old->value &&
							       !slots.on_trial,
						       "no way back from a model that fails");
					} else {
						bring(kind == 1 ? bad + 1 : new, true);
					}
					finished = true;
					count[kind] += operation;
				}
				/* The next start fails, too, at one of its first operations. */
				second = cut_at;
				cut_at = tear == 4 ? operation + 1 + random_byte() % 4 : 0;
				power_on();
				if (setjmp(power_failure) == 0) {
					demand(tinyml_slots_open(&slots, &model) == 0,
					       "no model after a power failure");
					demand(answer() != bad->value, "a bad model runs");
					demand(kind != 1 || answer() != old->value,
					       "an old model is back");
					if (slots.on_trial) {
						demand(tinyml_slots_confirm(&slots) == 0,
						       "cannot confirm");
					}
				}
				cut_at = 0;
				power_on();
				demand(tinyml_slots_open(&slots, &model) == 0,
				       "no model after two failures");
				bring(kind == 1 ? bad + 1 : new, true);
				power_on();
				demand(tinyml_slots_open(&slots, &model) == 0 && !slots.on_trial &&
					       answer() == (kind == 1 ? bad[1].value : new->value),
				       "not the newest model in the end");
				cut_at = second;
			}
		}
	}
	printf("operations %ld %ld %ld resumed %d\n", count[0], count[1], count[2], resumed);
}

void stages(const struct file *old, const struct file *new, const struct file *bad)
{
	struct tinyml_update update = {0};
	uint32_t most;

	memset(memory, 0xff, 2u * slot_bytes);
	power_on();
	demand(tinyml_slots_free(&slots) == TINYML_SLOT_ORDER, "free before open");
	demand(tinyml_slots_open(&slots, &model) == TINYML_SLOT_NONE, "a model in erased flash");
	demand(tinyml_slots_confirm(&slots) == TINYML_SLOT_NONE, "nothing to confirm");
	demand(model.model.run() == TINYML_SLOT_NONE, "an empty slot runs");
	bring(old, false);
	demand(send(old, true) == TINYML_SLOT_VERSION, "the same version again");
	bring(new, false);
	demand(send(old, false) == TINYML_SLOT_VERSION, "an older version");
	power_on();
	demand(tinyml_slots_open(&slots, &model) == 0 && answer() == new->value,
	       "the new one is not kept");
	/* A model that fails its self-test is not tried twice. */
	demand(send(bad, false) == 0, "the update fails");
	executed = 0;
	demand(tinyml_slots_open(&slots, &model) == 0 && answer() == new->value, "no way back");
	demand(executed > 1, "no self-test");
	executed = 0;
	power_on();
	demand(tinyml_slots_open(&slots, &model) == 0 && answer() == new->value, "no way back");
	demand(executed == 1, "a rejected model is tried again");
	/* One that never returns is tried three times. */
	hangs = true;
	demand(send(bad + 2, false) == 0, "the update fails");
	volatile int starts = 0;
	for (volatile int i = 0; i < 10; i++) {
		power_on();
		if (setjmp(power_failure) == 0) {
			demand(tinyml_slots_open(&slots, &model) == 0 && answer() == new->value,
			       "no way back");
		} else {
			starts++;
		}
	}
	demand(starts == TINYML_SLOT_TRIALS, "tried more or less often than three times");
	demand(mark_is_set(&slots.region[tinyml_slots_free(&slots)], MARK_REJECTED),
	       "not rejected after three times");
	hangs = false;
	/* A trial that nobody confirms ends as well. */
	demand(send(bad + 1, false) == 0, "the update fails");
	for (int i = 0; i < TINYML_SLOT_TRIALS; i++) {
		power_on();
		demand(tinyml_slots_open(&slots, &model) == 0 && answer() == bad[1].value,
		       "no trial");
		demand(tinyml_slots_free(&slots) == TINYML_SLOT_BUSY, "not busy on trial");
	}
	power_on();
	demand(tinyml_slots_open(&slots, &model) == 0 && answer() == new->value,
	       "never confirmed, yet kept");
	/* The application does not like it. */
	demand(send(bad + 1, false) == 0 && tinyml_slots_open(&slots, &model) == 0, "no trial");
	demand(answer() == bad[1].value && tinyml_slots_reject(&slots) == 0, "cannot reject");
	demand(tinyml_slots_open(&slots, &model) == 0 && answer() == new->value,
	       "rejected, yet used");
	/* Out of order, too much, too little. */
	demand(tinyml_update_write(&update, "x", 1) == TINYML_SLOT_ORDER, "write before begin");
	demand(tinyml_update_begin(&update, &slots, slot_bytes, false) == TINYML_SLOT_BOUNDS,
	       "too long");
	most = slot_bytes - marks_bytes(&slots.region[0]);
	demand(tinyml_update_begin(&update, &slots, most + 1u, false) == TINYML_SLOT_BOUNDS &&
		       tinyml_update_begin(&update, &slots, most, false) == 0,
	       "not exactly the room before the marks");
	demand(tinyml_update_begin(&update, &slots, 10, false) == 0, "begin");
	demand(tinyml_update_write(&update, "12345678901", 11) == TINYML_SLOT_BOUNDS,
	       "more than announced");
	demand(tinyml_update_finish(&update) == TINYML_SLOT_ORDER, "finished before the end");
	demand(tinyml_update_write(&update, "1234567890", 10) == 0, "write");
	demand(tinyml_update_finish(&update) == TINYML_SLOT_REGION, "ten bytes are no image");
	printf("fine\n");
}
