/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Requests of any kind to the receiver of updates: deployments with steps that are missing,
 * repeated or wrong, between restarts and nonsense. Requests and answers have exactly the memory
 * that they need, so that the sanitizer sees a byte too many. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tinyml/slot_receiver.h>

#include "slot_sim.h"

static struct tinyml_receiver receiver = {.slots = &slots, .slot = &model};
static unsigned long requests, accepted;

static uint32_t random_below(uint32_t limit)
{
	uint32_t value = 0;

	for (int i = 0; i < 4; i++) {
		value = value << 8 | random_byte();
	}
	return value % limit;
}

static void put_word(uint8_t *to, uint32_t value)
{
	for (unsigned int i = 0; i < 4u; i++) {
		to[i] = (uint8_t)(value >> (8u * i));
	}
}

static uint8_t request(const uint8_t *content, size_t bytes)
{
	const size_t room = TINYML_RECEIVER_ROOM - random_below(2) + random_below(20);
	uint8_t *sent = malloc(bytes), *reply = malloc(room);
	uint8_t error;
	size_t used;

	memcpy(sent, content, bytes);
	used = tinyml_receiver_request(&receiver, sent, bytes, reply, room);
	demand(used <= room && (used > 0u || room < TINYML_RECEIVER_ROOM), "an answer of no size");
	error = used > 0u ? reply[0] : 255u;
	requests++;
	accepted += error == 0u;
	free(sent);
	free(reply);
	return error;
}

static void nonsense(void)
{
	uint8_t content[80];
	const size_t bytes = random_below(sizeof(content));

	for (size_t i = 0; i < bytes; i++) {
		content[i] = random_below(2) == 0u ? random_byte() : (uint8_t)random_below(9);
	}
	(void)request(content, bytes);
}

static void begin(uint32_t image_bytes)
{
	uint8_t content[6] = {TINYML_RECEIVER_BEGIN};

	put_word(&content[1],
		 random_below(20) == 0u ? random_below(1u << random_below(32)) + 1u : image_bytes);
	content[5] = (uint8_t)random_below(2);
	(void)request(content, random_below(30) == 0u ? random_below(6) : 6u);
}

/* The next part of an image, or the last one again, or one from somewhere else. */
static void data(const struct file *file)
{
	const int index = tinyml_slots_free(&slots);
	const uint32_t done = receiver.update.done < file->bytes ? receiver.update.done : 0u;
	const uint32_t left = file->bytes - done, size = 1u + random_below(100);
	const uint32_t count = left < size ? left : size;
	uint8_t content[5 + 100] = {TINYML_RECEIVER_DATA};

	put_word(&content[1],
		 random_below(20) == 0u ? random_below(2u * file->bytes) - count : done);
	memcpy(&content[5], file->content[index < 0 ? 0 : index] + done, count);
	if (random_below(100) == 0u) {
		content[5u + random_below(count)] ^= (uint8_t)(1u << random_below(8));
	}
	(void)request(content, random_below(30) == 0u ? random_below(6) : 5u + count);
}

static void deployment(const struct file *file)
{
	static const uint8_t last[] = {TINYML_RECEIVER_FINISH, TINYML_RECEIVER_OPEN,
				       TINYML_RECEIVER_INFO, TINYML_RECEIVER_CONFIRM};

	begin(file->bytes);
	for (uint32_t parts = 0; parts < file->bytes && receiver.update.done < file->bytes;
	     parts++) {
		if (random_below(40) == 0u) {
			nonsense();
		}
		data(file);
		if (random_below(300) == 0u) {
			return;
		}
	}
	for (size_t i = 0; i < sizeof(last); i++) {
		if (random_below(10) != 0u) {
			(void)request(&last[i], 1);
		}
	}
	if (random_below(4) == 0u) {
		(void)request(&(uint8_t){TINYML_RECEIVER_REJECT}, 1);
	}
}

void fuzz(const struct file *files, size_t count, unsigned long wanted)
{
	unsigned long used = 0;

	memset(memory, 0xff, 2u * slot_bytes);
	power_on();
	(void)tinyml_slots_open(&slots, &model);
	while (requests < wanted) {
		const uint32_t kind = random_below(8);

		if (kind == 0u) {
			receiver.update = (struct tinyml_update){0};
			power_on();
			(void)tinyml_slots_open(&slots, &model);
		} else if (kind == 1u) {
			nonsense();
		} else {
			deployment(&files[random_below((uint32_t)count)]);
		}
		if (random_below(60) == 0u) { /* a new device: versions only rise */
			memset(memory, 0xff, 2u * slot_bytes);
			receiver.update = (struct tinyml_update){0};
			power_on();
			(void)tinyml_slots_open(&slots, &model);
		}
		if (slots.active >= 0) { /* whatever came, it is one of the images, undamaged */
			const uint8_t value = answer();
			bool known = false;

			for (size_t i = 0; i < count; i++) {
				known = known || files[i].value == value;
			}
			demand(known, "a model that nobody sent");
			used++;
		}
	}
	printf("%lu requests, %lu accepted, %lu times with a model\n", requests, accepted, used);
}
