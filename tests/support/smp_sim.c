/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The simulated device behind MCUmgr's requests, with zcbor on both sides: updates for the modes of
 * slot_sim.c, and requests of any kind. Requests and answers have exactly the memory that they
 * need, so that the sanitizer sees a byte too many. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zcbor_decode.h>
#include <zcbor_encode.h>

#include "slot_sim.h"
#include "smp_requests.h"

#define DEPTHS  3  /* of maps and lists in an answer: what Kconfig asks MCUmgr for */
#define MEMBERS 15 /* of an answer: CONFIG_MCUMGR_SMP_CBOR_MAX_MAIN_MAP_ENTRIES */
#define LONGEST 700

static struct tinyml_receiver receiver = {.slots = &slots, .slot = &model};
static unsigned long requests, accepted;

struct message {
	uint8_t content[LONGEST];
	size_t bytes;
};

static uint32_t random_below(uint32_t limit)
{
	uint32_t value = 0;

	for (int i = 0; i < 4; i++) {
		value = value << 8 | random_byte();
	}
	return value % limit;
}

/* As MCUmgr does it: the handler writes into the map of the answer. */
static int request(unsigned int command, const uint8_t *content, size_t bytes, size_t room,
		   struct message *answered)
{
	uint8_t *sent = malloc(bytes + 1u), *reply = malloc(room + 1u); /* one: not NULL */
	zcbor_state_t in[DEPTHS], out[DEPTHS + 2];
	int error;

	memcpy(sent, content, bytes);
	zcbor_new_decode_state(in, ZCBOR_ARRAY_SIZE(in), sent, bytes, 1, NULL, 0);
	zcbor_new_encode_state(out, ZCBOR_ARRAY_SIZE(out), reply, room, 0);
	if (!zcbor_map_start_encode(out, MEMBERS)) {
		error = TINYML_SMP_TOO_LONG;
	} else {
		error = tinyml_smp_request(&receiver, (enum tinyml_smp_command)command, in, out);
	}
	if (error == 0 && zcbor_map_end_encode(out, MEMBERS) && answered != NULL) {
		answered->bytes = (size_t)(out->payload - reply);
		memcpy(answered->content, reply, answered->bytes);
	}
	requests++;
	accepted += error == 0;
	free(sent);
	free(reply);
	return error;
}

static struct message map_of_begin(uint32_t bytes, bool resume)
{
	struct message message;

	ZCBOR_STATE_E(out, 1, message.content, sizeof(message.content), 0);
	demand(zcbor_map_start_encode(out, 2) && zcbor_tstr_put_lit(out, "len") &&
		       zcbor_uint32_put(out, bytes) && zcbor_tstr_put_lit(out, "resume") &&
		       zcbor_bool_put(out, resume) && zcbor_map_end_encode(out, 2),
	       "no room for a request");
	message.bytes = (size_t)(out->payload - message.content);
	return message;
}

static struct message map_of_data(uint32_t offset, const uint8_t *data, size_t bytes)
{
	struct message message;

	ZCBOR_STATE_E(out, 1, message.content, sizeof(message.content), 0);
	demand(zcbor_map_start_encode(out, 2) && zcbor_tstr_put_lit(out, "off") &&
		       zcbor_uint32_put(out, offset) && zcbor_tstr_put_lit(out, "data") &&
		       zcbor_bstr_encode_ptr(out, (const char *)data, bytes) &&
		       zcbor_map_end_encode(out, 2),
	       "no room for a request");
	message.bytes = (size_t)(out->payload - message.content);
	return message;
}

/* An integer in an answer. */
static uint32_t number(const struct message *answered, const char *key)
{
	uint32_t value = 0;

	ZCBOR_STATE_D(in, 2, answered->content, answered->bytes, 1, 0);
	demand(zcbor_unordered_map_start_decode(in) && zcbor_search_key_tstr_term(in, key, 16) &&
		       zcbor_uint32_decode(in, &value),
	       "an answer without a number");
	return value;
}

static int ask(unsigned int command, const struct message *message, struct message *answered)
{
	return request(command, message->content, message->bytes, LONGEST, answered);
}

static const struct message nothing = {{0xa0}, 1};

int send(const struct file *file, bool resume)
{
	const int index = tinyml_slots_free(&slots);
	struct message answered, message = map_of_begin(file->bytes, resume);
	uint32_t done;
	int error;

	demand(index >= 0, "no slot is free");
	error = ask(TINYML_SMP_UPLOAD, &message, &answered);
	if (error != 0) {
		return error;
	}
	done = number(&answered, "off");
	if (done > 0u) {
		if (number(&answered, "crc") == tinyml_slot_crc32(0, file->content[index], done)) {
			resumed++;
		} else {
			message = map_of_begin(file->bytes, false);
			error = ask(TINYML_SMP_UPLOAD, &message, &answered);
			done = 0;
		}
	}
	while (error == 0 && done < file->bytes) {
		const uint32_t left = file->bytes - done, count = left < 100u ? left : 100u;

		message = map_of_data(done, file->content[index] + done, count);
		error = ask(TINYML_SMP_UPLOAD, &message, &answered);
		if (error == 0) {
			done = number(&answered, "off");
		}
		if (error == 0 && done % 700u == 0u) { /* the answer was lost: once more */
			error = ask(TINYML_SMP_UPLOAD, &message, &answered);
			demand(number(&answered, "off") == done, "a part counts twice");
		}
	}
	return error != 0 ? error : ask(TINYML_SMP_TEST, &nothing, NULL);
}

/* Lists in lists, deeper than any stack; or a map that never ends. */
static struct message bomb(void)
{
	static const uint8_t opened[] = {0x81, 0x9f, 0xbf, 0xc1};
	struct message message = {.bytes = LONGEST};

	memset(message.content, opened[random_below(4)], LONGEST);
	if (random_below(4) != 0u) { /* as the value of a key that nobody knows */
		message.content[0] = random_below(2) == 0u ? 0xbf : 0xa1;
		message.content[1] = 0x61;
		message.content[2] = 'x';
	}
	return message;
}

static struct message noise_of_bytes(void)
{
	struct message message = {.bytes = random_below(60)};

	for (size_t i = 0; i < message.bytes; i++) {
		message.content[i] = random_byte();
	}
	if (message.bytes > 0u && random_below(2) == 0u) {
		message.content[0] = (uint8_t)(0xa0u + random_below(4));
	}
	return message;
}

static struct message damaged(struct message message)
{
	for (uint32_t i = random_below(4); i > 0u; i--) {
		message.content[random_below((uint32_t)message.bytes)] ^=
			(uint8_t)(1u << random_below(8));
	}
	if (random_below(4) == 0u) {
		message.bytes = random_below((uint32_t)message.bytes) + 1u;
	}
	return message;
}

static void nonsense(void)
{
	const bool nested = random_below(3) == 0u;
	struct message message = nested ? bomb() : noise_of_bytes();
	const int error = request(random_below(8), message.content, message.bytes,
				  random_below(LONGEST), NULL);

	demand(!nested || error > 0, "lists in lists are read");
}

static void deployment(const struct file *file)
{
	static const uint8_t last[] = {TINYML_SMP_TEST, TINYML_SMP_STATE, TINYML_SMP_CONFIRM};
	struct message message = map_of_begin(
		random_below(20) == 0u ? random_below(1u << random_below(32)) : file->bytes,
		random_below(2) == 0u);

	message = random_below(20) == 0u ? damaged(message) : message;
	(void)ask(TINYML_SMP_UPLOAD, &message, NULL);
	for (uint32_t parts = 0; parts < file->bytes && receiver.update.done < file->bytes;
	     parts++) {
		const int index = tinyml_slots_free(&slots);
		const uint32_t done = receiver.update.done;
		const uint32_t left = file->bytes - done, size = 1u + random_below(200);

		message = map_of_data(random_below(30) == 0u ? random_below(file->bytes) : done,
				      file->content[index < 0 ? 0 : index] + done,
				      left < size ? left : size);
		message = random_below(50) == 0u ? damaged(message) : message;
		(void)ask(TINYML_SMP_UPLOAD, &message, NULL);
		if (random_below(40) == 0u) {
			nonsense();
		}
		if (random_below(300) == 0u) {
			return;
		}
	}
	for (size_t i = 0; i < sizeof(last); i++) {
		if (random_below(10) != 0u) {
			(void)request(last[i], nothing.content, 1,
				      random_below(6) == 0u ? random_below(100) : LONGEST, NULL);
		}
	}
	if (random_below(4) == 0u) {
		(void)ask(random_below(2) == 0u ? TINYML_SMP_REJECT : TINYML_SMP_ERASE, &nothing,
			  NULL);
	}
}

static void start(void)
{
	receiver.update = (struct tinyml_update){0};
	power_on();
	(void)tinyml_slots_open(&slots, &model);
}

void fuzz(const struct file *files, size_t count, unsigned long wanted)
{
	unsigned long used = 0;

	memset(memory, 0xff, 2u * slot_bytes);
	start();
	while (requests < wanted) {
		const uint32_t kind = random_below(8);

		if (kind == 0u) {
			start();
		} else if (kind == 1u) {
			nonsense();
		} else {
			deployment(&files[random_below((uint32_t)count)]);
		}
		if (random_below(60) == 0u) { /* a new device: versions only rise */
			memset(memory, 0xff, 2u * slot_bytes);
			start();
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
