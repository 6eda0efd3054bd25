/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "update.h"

#include <stdio.h>

#include <tinyml/device_slots.h>
#include <tinyml/player.h>

#include "digits.h"

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

/* Receive the image of a pack that is for this core, or the first part of it. */
static int receive(struct pack pack, unsigned int percent)
{
	static struct tinyml_update update;
	int error = tinyml_pack_choose(&pack.data, &pack.bytes);
	const uint8_t *image = pack.data;
	const uint32_t bytes = pack.bytes;

	if (error == 0) {
		error = tinyml_update_begin(&update, slots, bytes, true);
	}

	if (error == 0 && update.done > 0u) {
		printf("resumed at %u of %u bytes\n", (unsigned int)update.done,
		       (unsigned int)bytes);
	}
	while (error == 0 && update.done < bytes / 100u * percent) {
		error = tinyml_update_write(&update, image + update.done, 1);
	}
	if (error != 0 || percent < 100u) {
		return error;
	}
	while (error == 0 && update.done < bytes) {
		error = tinyml_update_write(&update, image + update.done, 1);
	}
	return error != 0 ? error : tinyml_update_finish(&update);
}

static int try_and_confirm(void)
{
	int error = tinyml_slots_open(slots, slot);

	return error != 0 ? error : tinyml_slots_confirm(slots);
}

int tell_update(struct pack first, struct pack second)
{
	int before;

	expect("an empty flash", tinyml_slots_open(slots, slot), TINYML_SLOT_NONE);
	expect("version 1 arrives", receive(first, 100), 0);
	expect("version 1 is tried", try_and_confirm(), 0);
	before = digits_right(&slot->model);
	printf("%s from the flash: %d of 40 images right\n", slot->model.name, before);
	expect("half of version 2 arrives", receive(second, 50), 0);
	tinyml_device_slots_restart();
	expect("power fails; start", tinyml_slots_open(slots, slot), 0);
	wrong += digits_right(&slot->model) != before;
	expect("version 2 arrives", receive(second, 100), 0);
	expect("version 2 is tried", try_and_confirm(), 0);
	printf("%s from the flash: %d of 40 images right\n", slot->model.name,
	       digits_right(&slot->model));
	wrong += digits_right(&slot->model) <= before;
	expect("version 1 again", receive(first, 100), TINYML_SLOT_VERSION);
	return wrong;
}
