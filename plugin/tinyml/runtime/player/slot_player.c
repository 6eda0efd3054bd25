/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Slots that hold images without code: the slot lends its memory to a player. */

#include <tinyml/player.h>

/* The player of a slot, with the slot's memory. */
static void slot_player_lend(const struct tinyml_slot *slot, struct tinyml_player *player)
{
	player->memory[TINYML_PLAYER_ARENA] = slot->arena;
	player->memory[TINYML_PLAYER_STATE] = slot->state;
	player->arena_bytes = slot->arena_bytes;
	player->state_bytes = slot->state_bytes;
	player->tensor_count = TINYML_SLOT_TENSORS;
	player->run_model = slot->run_model;
	player->reset_model = slot->reset_model;
}

int tinyml_slot_player_check(const struct tinyml_slot *slot, const void *image, uint32_t bytes)
{
	struct tinyml_player trial = *slot->player->player;

	slot_player_lend(slot, &trial);
	return tinyml_player_check(&trial, image, bytes);
}

int tinyml_slot_player_open(struct tinyml_slot *slot, const void *image, uint32_t bytes)
{
	struct tinyml_player *const player = slot->player->player;
	int error;

	slot_player_lend(slot, player);
	player->tensors = slot->tensors;
	error = tinyml_player_open(player, image, bytes);
	if (error == 0) {
		player->model.lock = slot->model.lock;
		slot->model = player->model;
	}
	return error;
}

int tinyml_slot_player_run(struct tinyml_slot *slot)
{
	return tinyml_player_run(slot->player->player);
}

void tinyml_slot_player_reset(struct tinyml_slot *slot)
{
	tinyml_player_reset(slot->player->player);
}

int tinyml_slot_player_test(struct tinyml_slot *slot)
{
	return tinyml_player_self_test(slot->player->player);
}
