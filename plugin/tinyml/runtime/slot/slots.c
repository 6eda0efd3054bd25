/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Which of two slots is used: trials, confirming and going back. */

#include <tinyml/slots.h>

#include "flash.h"
#include "format.h"
#include "marks.h"

/* Less than 0, 0 or more, as the first is older, the same or newer. */
static int slots_compare(const uint32_t a[2], const uint32_t b[2])
{
	/* In memory: major, minor, then revision as a number of 16 bits. */
	uint32_t first = (a[0] & 0xffu) << 24 | (a[0] & 0xff00u) << 8 | a[0] >> 16;
	uint32_t second = (b[0] & 0xffu) << 24 | (b[0] & 0xff00u) << 8 | b[0] >> 16;

	if (first != second) {
		return first < second ? -1 : 1;
	}
	return a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : 0;
}

static const uint32_t *slots_version_in(const struct tinyml_slot_region *region)
{
	return ((const struct container_header *)region->memory)->version;
}

int tinyml_slots_newer(const struct tinyml_slots *slots, const struct tinyml_slot_region *region)
{
	if (slots->active < 0) {
		return 0;
	}
	return slots_compare(slots_version_in(region), slots->slot->version) > 0
		       ? 0
		       : TINYML_SLOT_VERSION;
}

/* Received, and neither kept nor given up. */
static bool slots_is_due(const struct tinyml_slot_region *region)
{
	return mark_is_set(region, MARK_COMPLETE) && !is_confirmed(region) &&
	       mark_is_blank(region, MARK_REJECTED);
}

static bool slots_is_kept(const struct tinyml_slot_region *region)
{
	return is_confirmed(region) && !mark_is_set(region, MARK_REJECTED);
}

/* Never try a model again. Where the mark for that cannot be written, no trial is left. */
static int slots_give_up(const struct tinyml_slot_region *region)
{
	int error = set_mark(region, MARK_REJECTED, 1);

	while (error != 0 && slots_is_due(region) &&
	       set_mark(region, MARK_TRIED, TINYML_SLOT_TRIALS) == 0) {
	}
	return !slots_is_due(region) || trials(region) == TINYML_SLOT_TRIALS ? 0 : error;
}

/* A model that was not confirmed. The mark of the trial comes before anything of it runs: if that
 * never returns, the next start knows. */
static int slots_try_model(struct tinyml_slots *slots, const struct tinyml_slot_region *region)
{
	int error = tinyml_slot_check(slots->slot, region, slots->trust);

	if (error == 0 && trials(region) == TINYML_SLOT_TRIALS) {
		error = TINYML_SLOT_REJECTED;
	}
	if (error == 0) {
		error = set_mark(region, MARK_TRIED, TINYML_SLOT_TRIALS);
		if (error != 0) { /* the flash's fault, not the model's */
			return error;
		}
		error = tinyml_slot_open(slots->slot, region, slots->trust);
	}
	if (error == 0) {
		error = tinyml_slot_self_test(slots->slot);
	}
#ifdef TINYML_SLOT_PLAYS_DEVICE
	if (error == TINYML_SLOT_NO_CODE) {
		error = 0;
	}
#endif
	if (error != 0) {
		tinyml_slot_close(slots->slot);
		(void)slots_give_up(region);
	}
	return error;
}

/* What a header says counts only after the image has passed its check: a region whose header makes
 * it look newer is tried first, and the other one if it fails. */
static int slots_newer_of(const struct tinyml_slot_region regions[2])
{
	for (int i = 0; i < 2; i++) {
		if (!slots_is_due(&regions[i]) && !slots_is_kept(&regions[i])) {
			return 1 - i;
		}
	}
	return slots_compare(slots_version_in(&regions[1]), slots_version_in(&regions[0])) > 0 ? 1
											       : 0;
}

int tinyml_slots_open(struct tinyml_slots *slots, struct tinyml_slot *slot)
{
	const struct tinyml_slot_region *regions = slots->region;
	int first;

	tinyml_slot_close(slot);
	slots->slot = NULL;
	slots->active = -1;
	slots->on_trial = false;
	if (!flash_is_sane(&regions[0]) || !flash_is_sane(&regions[1])) {
		return TINYML_SLOT_REGION;
	}
	slots->slot = slot;
	first = slots_newer_of(regions);
	for (int n = 0; n < 2; n++) {
		int i = n == 0 ? first : 1 - first;
		bool due = slots_is_due(&regions[i]);

		if (due ? slots_try_model(slots, &regions[i]) == 0
			: slots_is_kept(&regions[i]) &&
				    tinyml_slot_open(slot, &regions[i], slots->trust) == 0) {
			slots->active = (int8_t)i;
			slots->on_trial = due;
			return 0;
		}
	}
	return TINYML_SLOT_NONE;
}

int tinyml_slots_confirm(struct tinyml_slots *slots)
{
	int error = 0;

	if (slots->slot == NULL || slots->active < 0) {
		return TINYML_SLOT_NONE;
	}
	if (slots->on_trial) {
		error = set_mark(&slots->region[slots->active], MARK_CONFIRMED, TINYML_SLOT_TRIALS);
		slots->on_trial = error != 0;
	}
	return error;
}

int tinyml_slots_reject(struct tinyml_slots *slots)
{
	int error;

	if (!slots->on_trial) {
		return TINYML_SLOT_ORDER;
	}
	error = slots_give_up(&slots->region[slots->active]);
	if (error == 0) {
		(void)tinyml_slots_open(slots, slots->slot);
	}
	return error;
}

int tinyml_slots_free(const struct tinyml_slots *slots)
{
	if (slots->slot == NULL) {
		return TINYML_SLOT_ORDER;
	}
	if (slots->on_trial) {
		return TINYML_SLOT_BUSY;
	}
	if (slots->active < 0) {
		/* A model that was confirmed may be of use to another firmware. */
		return slots_is_kept(&slots->region[0]) && !slots_is_kept(&slots->region[1]) ? 1
											     : 0;
	}
	return slots->active == 0 ? 1 : 0;
}

enum tinyml_region_state tinyml_slots_state(const struct tinyml_slots *slots, int index,
					    uint32_t version[2])
{
	const struct tinyml_slot_region *region = &slots->region[index];

	if (!flash_is_sane(region) || !mark_is_set(region, MARK_COMPLETE)) {
		return TINYML_REGION_FREE;
	}
	version[0] = slots_version_in(region)[0];
	version[1] = slots_version_in(region)[1];
	if (slots_is_kept(region)) {
		return TINYML_REGION_KEPT;
	}
	return slots_is_due(region) && (trials(region) < TINYML_SLOT_TRIALS || slots->on_trial)
		       ? TINYML_REGION_DUE
		       : TINYML_REGION_REJECTED;
}
