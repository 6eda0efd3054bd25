/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Firmware without a model. `tinyml deploy` brings one over the serial port; it stays in the flash,
 * and a newer version replaces it. The computer runs and verifies it over the same port. */

#include <stdio.h>

#include <tinyml/host.h>
#include <tinyml/player.h>
#include <tinyml/slot_receiver.h>

#include "port.h"

#define ARENA_BYTES 16384
#define STATE_BYTES 4096

TINYML_SLOT_PLAYER_DEFINE(played, ARENA_BYTES, STATE_BYTES);

static struct tinyml_slots slots;

static void tell(int error)
{
	if (error == 0) {
		printf("model: %s, %u bytes of arena\n", played.model.name,
		       (unsigned int)played.model.arena_bytes);
	} else {
		printf("model: %s\n", tinyml_slot_error_text(error));
	}
	fflush(stdout);
}

static const struct tinyml_model *model(size_t index)
{
	return index == 0 ? &played.model : NULL;
}

static size_t receive_model(const uint8_t *request, size_t bytes, uint8_t *answer, size_t room)
{
	static struct tinyml_receiver receiver = {.slots = &slots, .slot = &played};
	const size_t used = tinyml_receiver_request(&receiver, request, bytes, answer, room);

	if (bytes > 0 && request[0] == TINYML_RECEIVER_CONFIRM) {
		tell(slots.active < 0 ? TINYML_SLOT_NONE : 0);
	}
	return used;
}

int main(int count, char **arguments)
{
	static const struct tinyml_host_port port = {
		.model = model, .send = port_send, .slot = receive_model};
	static struct tinyml_host host = {.port = &port};
	static uint8_t bytes[256];

	if (port_start(count, arguments, slots.region) != 0) {
		return 1;
	}
	tell(tinyml_slots_open(&slots, &played));
	for (;;) {
		const size_t read = port_read(bytes, sizeof(bytes));

		if (read > 0) {
			tinyml_host_receive(&host, bytes, read);
		} else {
			tinyml_host_idle(&host);
		}
	}
}
