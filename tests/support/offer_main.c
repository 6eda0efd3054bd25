/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A device that takes packs from files, part by part. Each argument is a file or a word: keep,
 * give-up, restart, half (the next file arrives by half). Prints a line for each file: the error,
 * what has become of it, how many bytes were read. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tinyml/player.h>
#include <tinyml/slot_offer.h>

#define SLOT_BYTES  16384
#define ERASE_BYTES 1024

TINYML_SLOT_PLAYER_DEFINE(model, 4096, 0);

static uint8_t memory[2][SLOT_BYTES] __attribute__((aligned(64)));
static unsigned long taken;

static int erase(void *context, uint32_t offset, uint32_t bytes)
{
	memset((uint8_t *)context + offset, 0xff, bytes);
	return 0;
}

static int write_flash(void *context, uint32_t offset, const void *data, uint32_t bytes)
{
	memcpy((uint8_t *)context + offset, data, bytes);
	return 0;
}

static int read_at(void *context, uint32_t position, void *data, uint32_t bytes)
{
	taken += bytes;
	return fseek(context, (long)position, SEEK_SET) != 0 ||
	       fread(data, 1, bytes, context) != bytes;
}

static int receive(const struct tinyml_offer *offer, struct tinyml_slots *slots, FILE *file,
		   bool half)
{
	static struct tinyml_update update;
	int error = tinyml_offer_begin(offer, slots, &update);
	const uint32_t end = half ? offer->bytes / 2u : offer->bytes;
	uint8_t part[100];

	while (error == 0 && update.done < end) {
		const uint32_t left = end - update.done;
		const uint32_t count = left < sizeof(part) ? left : (uint32_t)sizeof(part);

		if (read_at(file, offer->position + update.done, part, count) != 0) {
			return TINYML_SLOT_FLASH;
		}
		error = tinyml_update_write(&update, part, count);
	}
	if (error == 0 && !half) {
		error = tinyml_update_finish(&update);
		error = error != 0 ? error : tinyml_slots_open(slots, &model);
	}
	return error;
}

int main(int argc, char **argv)
{
	const struct tinyml_flash flash[2] = {
		{.erase = erase,
		 .write = write_flash,
		 .context = memory[0],
		 .erase_bytes = ERASE_BYTES,
		 .write_bytes = 8},
		{.erase = erase,
		 .write = write_flash,
		 .context = memory[1],
		 .erase_bytes = ERASE_BYTES,
		 .write_bytes = 8},
	};
	static struct tinyml_slots slots;
	bool half = false;

	memset(memory, 0xff, sizeof(memory));
	for (int i = 0; i < 2; i++) {
		slots.region[i] = (struct tinyml_slot_region){
			memory[i], 0x10000u * (uint32_t)(i + 1), SLOT_BYTES, &flash[i]};
	}
	(void)tinyml_slots_open(&slots, &model);
	for (int i = 1; i < argc; i++) {
		struct tinyml_offer offer;
		struct tinyml_pack_file file = {.read = read_at};
		int error;

		if (strcmp(argv[i], "keep") == 0) {
			(void)tinyml_slots_confirm(&slots);
			continue;
		}
		if (strcmp(argv[i], "give-up") == 0) {
			(void)tinyml_slots_reject(&slots);
			continue;
		}
		if (strcmp(argv[i], "restart") == 0) {
			(void)tinyml_slots_open(&slots, &model);
			continue;
		}
		if (strcmp(argv[i], "half") == 0) {
			half = true;
			continue;
		}
		file.context = fopen(argv[i], "rb");
		fseek(file.context, 0, SEEK_END);
		file.bytes = (uint32_t)ftell(file.context);
		taken = 0;
		error = tinyml_slots_offer(&slots, &model, &file, &offer);
		if (error == 0 && offer.state == TINYML_OFFER_NEW) {
			error = receive(&offer, &slots, file.context, half);
		}
		printf("%d %d %lu\n", error, offer.state, taken);
		half = false;
		fclose(file.context);
	}
	return 0;
}
