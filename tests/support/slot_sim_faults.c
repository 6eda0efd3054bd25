/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Marks of which power failure left a part, and flash that fails without one. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "marks.h" /* of runtime/slot */
#include "slot_sim.h"

#define MARK_BYTES 16u

static uint8_t *mark_at(int slot, unsigned int mark)
{
	uint32_t stride = marks_bytes(&slots.region[slot]) / MARK_COUNT;

	return memory + (uint32_t)slot * slot_bytes + slot_bytes - (MARK_COUNT - mark) * stride;
}

#define WAYS (2u * MARK_BYTES + 8u * MARK_BYTES)

/* The flash as it was, but for a mark that power failure left with only its first bytes, only its
 * last bytes, or one bit wrong. Way 0 and way MARK_BYTES leave nothing of it. */
static void leave_part(const uint8_t *before, int slot, unsigned int mark, unsigned int way)
{
	unsigned int part = way % MARK_BYTES;
	uint8_t *found = mark_at(slot, mark);

	memcpy(memory, before, 2u * slot_bytes);
	if (way < MARK_BYTES) {
		memset(found + part, 0xff, MARK_BYTES - part);
	} else if (way < 2u * MARK_BYTES) {
		memset(found, 0xff, MARK_BYTES - part);
	} else {
		unsigned int bit = way - 2u * MARK_BYTES;

		found[bit / 8u] ^= (uint8_t)(1u << bit % 8u);
	}
}

/* The model that a start finds, and whether it is on trial. */
static uint8_t started(bool *on_trial)
{
	power_on();
	demand(tinyml_slots_open(&slots, &model) == 0, "no model");
	*on_trial = slots.on_trial;
	return answer();
}

/* A mark counts only when all of its bytes are right; every other content is "not blank". */
void marks(const struct file *old, const struct file *new)
{
	uint8_t *received = malloc(2u * slot_bytes);
	uint8_t *tried = malloc(2u * slot_bytes);
	uint8_t *rejected = malloc(2u * slot_bytes);
	uint8_t *confirmed = malloc(2u * slot_bytes);
	bool on_trial;
	int slot;

	memset(memory, 0xff, 2u * slot_bytes);
	power_on();
	(void)tinyml_slots_open(&slots, &model);
	bring(old, false);
	slot = tinyml_slots_free(&slots);
	demand(send(new, false) == 0, "the update fails");
	memcpy(received, memory, 2u * slot_bytes);
	demand(tinyml_slots_open(&slots, &model) == 0 && slots.on_trial, "no trial");
	memcpy(tried, memory, 2u * slot_bytes);
	demand(tinyml_slots_confirm(&slots) == 0, "cannot confirm");
	memcpy(confirmed, memory, 2u * slot_bytes);
	memcpy(memory, tried, 2u * slot_bytes);
	demand(started(&on_trial) == new->value && tinyml_slots_reject(&slots) == 0,
	       "cannot reject");
	memcpy(rejected, memory, 2u * slot_bytes);
	for (unsigned int way = 0; way < WAYS; way++) {
		leave_part(received, slot, MARK_COMPLETE, way);
		executed = 0;
		demand(started(&on_trial) == old->value && !on_trial && executed == 1,
		       "half a mark of completeness counts");
	}
	for (unsigned int way = 0; way < WAYS; way++) {
		leave_part(confirmed, slot, MARK_CONFIRMED, way);
		demand(started(&on_trial) == new->value && on_trial,
		       "half a mark of confirmation counts");
		demand(tinyml_slots_confirm(&slots) == 0, "cannot confirm beside half a mark");
		demand(started(&on_trial) == new->value && !on_trial, "confirmed, yet on trial");
	}
	for (unsigned int way = 1; way < WAYS; way++) {
		if (way == MARK_BYTES) {
			continue;
		}
		/* Half a trial is one, or a model that crashes the device would be tried for ever.
		 */
		leave_part(tried, slot, MARK_TRIED, way);
		for (int i = 1; i < TINYML_SLOT_TRIALS; i++) {
			demand(started(&on_trial) == new->value && on_trial, "too few trials");
		}
		demand(started(&on_trial) == old->value && !on_trial, "half a trial is none");
		/* Half a rejection is one: the model has failed already. */
		leave_part(rejected, slot, MARK_REJECTED, way);
		demand(started(&on_trial) == old->value && !on_trial, "half a rejection is none");
	}
	printf("fine\n");
}

/* An update of which one operation fails: it says so, or has another way; then it is repeated. */
static long update_with_fault(const struct file *old, const struct file *new, long fault)
{
	int error;

	memset(memory, 0xff, 2u * slot_bytes);
	power_on();
	fails_at = 0;
	(void)tinyml_slots_open(&slots, &model);
	bring(old, false);
	operation = 0;
	fails_at = fault;
	error = send(new, true);
	demand(error == 0 || error == TINYML_SLOT_FLASH, "another error than the flash's");
	demand(tinyml_slots_open(&slots, &model) == 0, "no model");
	if (error == 0) {
		/* For trial and confirmation there are two more marks. */
		demand(answer() == new->value && slots.on_trial, "no trial");
		demand(tinyml_slots_confirm(&slots) == 0, "cannot confirm");
	} else {
		demand(answer() == old->value && !slots.on_trial, "half an update is used");
	}
	fails_at = 0;
	bring(new, true);
	power_on();
	demand(tinyml_slots_open(&slots, &model) == 0 && answer() == new->value && !slots.on_trial,
	       "not the new model in the end");
	return operation;
}

static uint32_t units_that_end_too_late(void *context, uint32_t offset)
{
	(void)context;
	return offset == 0u ? 128u : 256u;
}

void faults(const struct file *old, const struct file *new)
{
	struct tinyml_update update = {0};
	static const struct tinyml_flash_stream no_buffer = {0}, odd_buffer = {.bytes = 12},
						large_buffer = {.bytes = 512};
	struct tinyml_flash right, wrong[12];
	long last = 0;

	for (long fault = 1; fault == 1 || fault <= last; fault++) {
		last = update_with_fault(old, new, fault);
	}
	/* Nothing is written to flash that is described wrongly. */
	right = flash[0];
	for (int i = 0; i < 12; i++) {
		wrong[i] = right;
	}
	wrong[0].erase_bytes = 0;
	wrong[1].write_bytes = 0;
	wrong[2].write_bytes = 2u * TINYML_FLASH_WRITE_MAX;
	wrong[3].write_bytes = 24;  /* not a power of two */
	wrong[4].erase_bytes = 250; /* not a number of write units */
	wrong[5].erase_bytes = 768 * slot_bytes;
	wrong[6].stream = &no_buffer;
	wrong[7].stream = &odd_buffer;   /* not a number of write units */
	wrong[8].stream = &large_buffer; /* larger than an erase unit */
	wrong[9].unit = units_that_end_too_late;
	wrong[10].erase = NULL;
	wrong[11].write = NULL;
	for (int i = 0; i < 12; i++) {
		flash[0] = wrong[i];
		flash[1] = wrong[i];
		operation = 0;
		demand(tinyml_update_begin(&update, &slots, 100, false) == TINYML_SLOT_REGION &&
			       tinyml_slots_open(&slots, &model) == TINYML_SLOT_REGION &&
			       tinyml_slots_free(&slots) == TINYML_SLOT_ORDER && operation == 0,
		       "flash that cannot be");
		flash[0] = flash[1] = right;
		demand(tinyml_slots_open(&slots, &model) == 0, "no model");
	}
	for (int i = 0; i < 2; i++) {
		slots.region[i].flash = NULL;
		demand(tinyml_slots_open(&slots, &model) == TINYML_SLOT_REGION, "no flash");
		slots.region[i].flash = &right;
	}
	slots.region[0].flash = slots.region[1].flash = NULL;
	demand(tinyml_update_begin(&update, &slots, 100, false) == TINYML_SLOT_ORDER, "not open");
	printf("operations %ld\n", last);
}
