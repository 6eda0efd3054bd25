/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include <tinyml/slot_receiver.h>

static uint32_t receiver_get_word(const uint8_t *from)
{
	return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
	       (uint32_t)from[3] << 24;
}

static size_t receiver_put_word(uint8_t *answer, size_t used, uint32_t value)
{
	for (unsigned int i = 0; i < 4u; i++) {
		answer[used++] = (uint8_t)(value >> (8u * i));
	}
	return used;
}

static size_t receiver_describe(const struct tinyml_receiver *receiver, uint8_t *answer,
				size_t used, size_t room)
{
	const struct tinyml_slots *slots = receiver->slots;
	int index = tinyml_slots_free(slots);
	const char *name = slots->active < 0 ? "" : receiver->slot->model.name;
	size_t length = strlen(name);

	used = receiver_put_word(answer, used, index < 0 ? 0 : slots->region[index].address);
	used = receiver_put_word(answer, used, index < 0 ? 0 : slots->region[index].bytes);
	used = receiver_put_word(answer, used, slots->active < 0 ? 0 : receiver->slot->version[0]);
	used = receiver_put_word(answer, used, slots->active < 0 ? 0 : receiver->slot->version[1]);
	answer[used++] = slots->on_trial;
	length = length < room - used ? length : room - used;
	for (size_t i = 0; i < length; i++) {
		answer[used + i] = (uint8_t)name[i];
	}
	return used + length;
}

size_t tinyml_receiver_kernels(const struct tinyml_slot_player *player, uint8_t *bits, size_t room)
{
	const uint32_t count = *player->kernel_count;
	size_t used = 0;

	for (uint32_t i = 0; i < count && used < room; i += 8u) {
		uint8_t kernels = 0;

		for (uint32_t j = 0; j < 8u && i + j < count; j++) {
			kernels |= (uint8_t)((player->kernels[i + j] != 0u ? 1u : 0u) << j);
		}
		bits[used++] = kernels;
	}
	return used;
}

int tinyml_receiver_take(struct tinyml_receiver *receiver, uint32_t offset, const uint8_t *data,
			 uint32_t bytes)
{
	struct tinyml_update *update = &receiver->update;

	if (offset + bytes == update->done) { /* sent again because the answer was lost */
		return tinyml_update_write(update, NULL, 0);
	}
	return offset != update->done ? TINYML_SLOT_ORDER
				      : tinyml_update_write(update, data, bytes);
}

static int receiver_execute(struct tinyml_receiver *receiver, uint8_t command,
			    const uint8_t *arguments, size_t bytes)
{
	switch (command) {
	case TINYML_RECEIVER_INFO:
		return 0;
	case TINYML_RECEIVER_BEGIN:
		return bytes < 5u ? TINYML_SLOT_ORDER
				  : tinyml_update_begin(&receiver->update, receiver->slots,
							receiver_get_word(arguments),
							arguments[4] != 0u);
	case TINYML_RECEIVER_DATA:
		return bytes < 4u ? TINYML_SLOT_ORDER
				  : tinyml_receiver_take(receiver, receiver_get_word(arguments),
							 &arguments[4], (uint32_t)bytes - 4u);
	case TINYML_RECEIVER_FINISH:
		return tinyml_update_finish(&receiver->update);
	case TINYML_RECEIVER_OPEN:
		return tinyml_slots_open(receiver->slots, receiver->slot);
	case TINYML_RECEIVER_CONFIRM:
		return tinyml_slots_confirm(receiver->slots);
	case TINYML_RECEIVER_REJECT:
		return tinyml_slots_reject(receiver->slots);
	case TINYML_RECEIVER_PLAYER:
		return receiver->slot->player != NULL ? 0 : TINYML_SLOT_ABI;
	default:
		return TINYML_SLOT_ORDER;
	}
}

size_t tinyml_receiver_request(struct tinyml_receiver *receiver, const uint8_t *request,
			       size_t bytes, uint8_t *answer, size_t room)
{
	uint8_t command = bytes > 0u ? request[0] : 0u;
	size_t used = 1;
	int error;

	if (room < TINYML_RECEIVER_ROOM) {
		return 0;
	}
	error = receiver_execute(receiver, command, request + 1, bytes > 0u ? bytes - 1u : 0u);
	answer[0] = (uint8_t)-error;
	if (error != 0) {
		return used;
	}
	if (command == TINYML_RECEIVER_INFO || command == TINYML_RECEIVER_OPEN) {
		used = receiver_describe(receiver, answer, used, room);
	}
	if (command == TINYML_RECEIVER_PLAYER) {
		used = receiver_put_word(answer, used, receiver->slot->player->core);
		used += tinyml_receiver_kernels(receiver->slot->player, answer + used, room - used);
	}
	if (command == TINYML_RECEIVER_BEGIN || command == TINYML_RECEIVER_DATA) {
		used = receiver_put_word(answer, used, receiver->update.done);
	}
	if (command == TINYML_RECEIVER_BEGIN) {
		used = receiver_put_word(answer, used, tinyml_update_crc32(&receiver->update));
	}
	return used;
}
