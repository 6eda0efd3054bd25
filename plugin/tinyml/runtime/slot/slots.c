/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Which of two slots is used: trials, confirming and going back. */

#include <tinyml/slots.h>

#include "format.h"
#include "marks.h"

/* Less than 0, 0 or more, as the first is older, the same or newer. */
static int compare(const uint32_t a[2], const uint32_t b[2])
{
	/* In memory: major, minor, then revision as a number of 16 bits. */
	uint32_t first = (a[0] & 0xffu) << 24 | (a[0] & 0xff00u) << 8 | a[0] >> 16;
	uint32_t second = (b[0] & 0xffu) << 24 | (b[0] & 0xff00u) << 8 | b[0] >> 16;

	if (first != second) {
		return first < second ? -1 : 1;
	}
	return a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : 0;
}

static const uint32_t *version_in(const struct tinyml_slot_region *region)
{
	return ((const struct container_header *)region->memory)->version;
}

int tinyml_slots_newer(const struct tinyml_slots *slots, const struct tinyml_slot_region *region)
{
	if (slots->active < 0) {
		return 0;
	}
	return compare(version_in(region), slots->slot->version) > 0 ? 0 : TINYML_SLOT_VERSION;
}

static bool is_due(const struct tinyml_slot_region *region)
{
	return mark_is_set(region, MARK_COMPLETE) && !is_confirmed(region) &&
	       mark_is_blank(region, MARK_REJECTED);
}

/* The first time a model runs. The mark comes before anything of it runs: if that never returns,
 * the next start knows. */
static int try_model(struct tinyml_slots *slots, const struct tinyml_slot_region *region)
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
	if (error == TINYML_SLOT_NO_CODE) { /* a machine that only emulates a device */
		error = 0;
	}
	if (error != 0) {
		tinyml_slot_close(slots->slot);
		(void)set_mark(region, MARK_REJECTED, 1);
	}
	return error;
}

int tinyml_slots_open(struct tinyml_slots *slots, struct tinyml_slot *slot)
{
	const struct tinyml_slot_region *regions = slots->region;
	bool confirmed[2] = {is_confirmed(&regions[0]), is_confirmed(&regions[1])};
	int newer = compare(version_in(&regions[1]), version_in(&regions[0])) > 0 ? 1 : 0;

	tinyml_slot_close(slot);
	slots->slot = slot;
	slots->active = -1;
	slots->on_trial = false;
	for (int i = 0; i < 2; i++) {
		/* An old one that was never confirmed may be what is left of an update after it. */
		if (is_due(&regions[i]) && !(confirmed[1 - i] && newer != i) &&
		    try_model(slots, &regions[i]) == 0) {
			slots->active = (int8_t)i;
			slots->on_trial = true;
			return 0;
		}
	}
	for (int n = 0; n < 2; n++) {
		int i = n == 0 ? newer : 1 - newer;

		if (confirmed[i] && tinyml_slot_open(slot, &regions[i], slots->trust) == 0) {
			slots->active = (int8_t)i;
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
	if (!slots->on_trial) {
		return TINYML_SLOT_ORDER;
	}
	return set_mark(&slots->region[slots->active], MARK_REJECTED, 1);
}

int tinyml_slots_free(const struct tinyml_slots *slots)
{
	if (slots->slot == NULL) {
		return TINYML_SLOT_ORDER;
	}
	if (slots->on_trial) {
		return TINYML_SLOT_BUSY;
	}
	return slots->active == 0 ? 1 : 0;
}
