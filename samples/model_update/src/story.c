/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "story.h"

#include <stdio.h>

#include <tinyml/device_slots.h>

#include "accuracy.h"
#include "delivery.h"

static struct tinyml_slots *const slots = &tinyml_device_slots;
static struct tinyml_slot *const slot = &tinyml_slot_model;
static int wrong;

static void expect(const char *what, int found, int expected)
{
	printf("%s: %s\n", what, tinyml_slot_error_text(found));
	if (found != expected) {
		printf("FAIL: expected: %s\n", tinyml_slot_error_text(expected));
		wrong++;
	}
}

/* Receive a pack, or the first part of it; one byte may arrive damaged. */
static int receive(enum pack pack, unsigned int percent, uint32_t damaged)
{
	static struct tinyml_update update;
	struct delivery delivery = order(pack, slots->region[tinyml_slots_free(slots)].address);
	int error = tinyml_update_begin(&update, slots, delivery.bytes, true);

	if (error == 0 && update.done > 0u) {
		if (tinyml_update_crc32(&update) ==
		    tinyml_slot_crc32(0, delivery.image, update.done)) {
			printf("resumed at %u of %u bytes\n", (unsigned int)update.done,
			       (unsigned int)delivery.bytes);
		} else {
			error = tinyml_update_begin(&update, slots, delivery.bytes, false);
		}
	}
	while (error == 0 && update.done < delivery.bytes / 100u * percent) {
		uint8_t byte = delivery.image[update.done] ^ (update.done == damaged ? 1u : 0u);

		error = tinyml_update_write(&update, &byte, 1);
	}
	if (percent < 100u) {
		return error;
	}
	while (error == 0 && update.done < delivery.bytes) {
		error = tinyml_update_write(&update, delivery.image + update.done, 1);
	}
	return error != 0 ? error : tinyml_update_finish(&update);
}

static int try_and_confirm(void)
{
	int error = tinyml_slots_open(slots, slot);

	if (error != 0) {
		return error;
	}
	return tinyml_slots_confirm(slots);
}

static void report(unsigned int version, int previous, int *right)
{
	*right = slots->active < 0 ? TINYML_SLOT_NONE : images_right(&slot->model);
	if (*right < 0) {
		printf("%s version %u: %s\n", slot->model.name, version,
		       tinyml_slot_error_text(*right));
		wrong += *right != TINYML_SLOT_NO_CODE;
	} else {
		printf("%s version %u: %d of 40 images right\n", slot->model.name, version, *right);
		wrong += *right <= previous;
	}
	wrong += (slot->version[0] & 0xffu) != version;
}

int tell_story(void)
{
	int first, second, again;

	expect("start", tinyml_slots_open(slots, slot), TINYML_SLOT_NONE);
	expect("version 1 arrives", receive(DIGITS_1, 100, UINT32_MAX), 0);
	expect("version 1 is tried", try_and_confirm(), 0);
	report(1, 0, &first);

	expect("half of version 2 arrives", receive(DIGITS_2, 50, UINT32_MAX), 0);
	tinyml_device_slots_restart();
	expect("power fails; start", tinyml_slots_open(slots, slot), 0);
	report(1, 0, &again);
	expect("version 2 arrives", receive(DIGITS_2, 100, UINT32_MAX), 0);
	expect("version 2 is tried", try_and_confirm(), 0);
	report(2, first, &second);

	expect("a damaged pack", receive(FORGED_3, 100, 1000), TINYML_SLOT_DAMAGED);
	if (slots->trust != NULL) {
		expect("a forged pack", receive(FORGED_3, 100, UINT32_MAX), TINYML_SLOT_SIGNATURE);
	} else {
		printf("a forged pack: signatures are off, it would be accepted\n");
	}
	expect("version 1 again", receive(DIGITS_1, 100, UINT32_MAX), TINYML_SLOT_VERSION);
	tinyml_device_slots_restart();
	expect("start", tinyml_slots_open(slots, slot), 0);
	report(2, first, &again);
	return wrong;
}
