/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "device.h"

#include <string.h>

#include <zephyr/sys/util.h>

#define DEFINE_IMAGES
#include "images.h"

static struct tinyml_slots *const slots = &tinyml_device_slots;
static struct tinyml_slot *const slot = &tinyml_slot_model;

uint32_t resumed_at, reports;
void (*watch)(void);

struct arriving image_of(enum pack pack, int index)
{
	return images[pack][index];
}

void fresh_device(void)
{
	for (int i = 0; i < 2; i++) {
		const struct tinyml_flash *flash = slots->region[i].flash;

		for (uint32_t at = 0; at < slots->region[i].bytes; at += flash->erase_bytes) {
			flash->erase(flash->context, at, flash->erase_bytes);
		}
	}
	start();
}

int start(void)
{
	tinyml_device_slots_restart();
	return tinyml_slots_open(slots, slot);
}

static void count(struct tinyml_update *update)
{
	ARG_UNUSED(update);
	reports++;
	if (watch != NULL) {
		watch();
	}
}

int send(enum pack pack, uint32_t stop_at)
{
	struct tinyml_update update = {.progress = count};
	int index = tinyml_slots_free(slots);
	struct arriving image;
	int error;

	if (index < 0) {
		return index;
	}
	image = images[pack][index];
	reports = 0;
	error = tinyml_update_begin(&update, slots, image.bytes, true);
	if (error == 0 && update.done > 0u &&
	    tinyml_update_crc32(&update) != tinyml_slot_crc32(0, image.content, update.done)) {
		error = tinyml_update_begin(&update, slots, image.bytes, false);
	}
	resumed_at = update.done;
	while (error == 0 && update.done < MIN(image.bytes, stop_at)) {
		error = tinyml_update_write(&update, image.content + update.done,
					    MIN(100u, image.bytes - update.done));
	}
	if (error != 0 || update.done < image.bytes) {
		return error;
	}
	return tinyml_update_finish(&update);
}

int bring(enum pack pack)
{
	int error = send(pack, EVERYTHING);

	error = error != 0 ? error : tinyml_slots_open(slots, slot);
	return error != 0 ? error : tinyml_slots_confirm(slots);
}

unsigned int version(void)
{
	return slots->active < 0 ? 0 : slot->version[0] & 0xffu;
}

bool computes(void)
{
	static const float expected[2][4] = {{11, 12, 13, 14}, {31, 32, 33, 34}};
	const struct tinyml_model *model = &slot->model;

	if (IS_ENABLED(CONFIG_ARCH_POSIX)) {
		return model->run() == TINYML_SLOT_NO_CODE;
	}
	model->reset();
	for (int step = 0; step < 2; step++) {
		for (int i = 0; i < 4; i++) {
			((float *)model->inputs[0].data)[i] = 10.0f;
		}
		if (model->run() != 0 ||
		    memcmp(model->outputs[0].data, expected[step], sizeof(expected[step])) != 0) {
			return false;
		}
	}
	return true;
}
