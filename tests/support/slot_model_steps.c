/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What can happen to a device, and what must be true whatever happens. */

#include <stdlib.h>
#include <string.h>

#include "marks.h" /* of runtime/slot */
#include "slot_model.h"

struct world world;
struct file files[FILES];
const char *doing = "";
unsigned long resumed;

static uint8_t arena[256] __attribute__((aligned(16)));
static uint8_t state[64] __attribute__((aligned(16)));

void demand(bool fine, const char *what)
{
	if (fine) {
		return;
	}
	fprintf(stderr, "%s flash, %s", kind == NULL ? "no" : kind->name, doing);
	if (cut_at != 0) {
		fprintf(stderr, ", power fails in operation %ld, tear %d", cut_at, tear);
	}
	fprintf(stderr, ": %s\n", what);
	print_path(stderr);
	exit(1);
}

/* Nothing of an image is executed. Instead of code it has two bytes at each entry: a letter, and
 * what the function "computes". */
static int fake_call(struct tinyml_slot *slot, tinyml_slot_entry entry)
{
	const uint8_t *code = (const uint8_t *)(uintptr_t)entry;

	if (code[0] == 'R') {
		slot->arena[0] = code[1];
		return 0;
	}
	return code[0] == 'N' ? TINYML_SLOT_NO_CODE : code[1];
}

void power_on(void)
{
	const struct tinyml_slot_region regions[2] = {world.slots.region[0], world.slots.region[1]};

	memset(&world.slots, 0, sizeof(world.slots));
	memset(&world.model, 0, sizeof(world.model));
	memcpy(world.slots.region, regions, sizeof(regions));
	for (int i = 0; i < CLIENTS; i++) {
		memset(&world.clients[i], 0, sizeof(world.clients[i]));
		world.clients[i].file = -1;
	}
	memset(world.waiting, 0, sizeof(world.waiting));
	world.waiting_at = world.waiting_bytes = 0;
	world.model.arena = arena;
	world.model.state = state;
	world.model.arena_bytes = sizeof(arena);
	world.model.state_bytes = sizeof(state);
	world.model.call = fake_call;
	world.model.sync = expect_reads;
	world.off = false;
}

int file_in_use(void)
{
	const int slot = world.slots.active;

	if (world.slots.slot == NULL || slot < 0) {
		return -1;
	}
	demand(is_readable(slot, 0, files[0].bytes), "a model that cannot be read");
	for (int i = 0; i < FILES; i++) {
		if (memcmp(world.content[slot], files[i].content[slot], files[i].bytes) == 0) {
			demand(tinyml_slot_run(&world.model) == 0 && arena[0] == files[i].value,
			       "the model computes something else");
			return i;
		}
	}
	demand(false, "a model that nobody sent");
	return -1;
}

/* After each opening. */
static void check_choice(int error)
{
	struct ghost *ghost = &world.ghost;
	const int file = file_in_use(), slot = world.slots.active;
	const bool safe = ghost->kept >= 0 && !ghost->rotten[ghost->kept_in];

	demand(error == 0 || error == TINYML_SLOT_NONE, "opening ends in a strange error");
	demand((error == 0) == (file >= 0), "opening contradicts itself");
	demand(file >= 0 || !safe, "no model, although one was confirmed");
	if (file < 0) {
		return;
	}
	demand(file != BAD, "a model that fails its self-test is used");
	demand(!ghost->rejected[slot], "a model that was given up is used");
	if (world.slots.on_trial) {
		demand(ghost->sent[slot] == file,
		       "a model is tried that was not received completely");
		demand(++ghost->trials[slot] <= TINYML_SLOT_TRIALS, "a model is tried too often");
		return;
	}
	demand(file == ghost->kept || (ghost->maybe_kept & 1u << file) != 0u ||
		       (ghost->kept >= 0 && ghost->rotten[ghost->kept_in]),
	       "a model that was not confirmed last");
	demand(!safe || file >= ghost->kept, "an older model is back");
	ghost->kept = (int8_t)file;
	ghost->kept_in = (int8_t)slot;
	ghost->maybe_kept = 0;
}

void open_again(void)
{
	doing = "open";
	check_choice(tinyml_slots_open(&world.slots, &world.model));
}

void start(void)
{
	doing = "start";
	power_on();
	check_choice(tinyml_slots_open(&world.slots, &world.model));
}

/* What a sender does: ask what is there, go on with it if that is the start of its image. */
void begin(int client, int file, bool resume)
{
	struct tinyml_update *update = &world.clients[client].update;
	const int slot = tinyml_slots_free(&world.slots);
	int error;

	doing = resume ? "begin, resume" : "begin";
	if (slot >= 0) { /* what a failure leaves of what was there may be tried once more */
		world.ghost.trials[slot] = 0;
		world.ghost.rejected[slot] = false;
		world.ghost.last_sent[slot] = (int8_t)file;
	}
	error = tinyml_update_begin(update, &world.slots, files[file].bytes, resume);
	demand(error == (slot < 0 ? slot : 0), "begin fails");
	if (slot < 0) {
		return;
	}
	if (update->done > 0u &&
	    tinyml_update_crc32(update) !=
		    tinyml_slot_crc32(0, files[file].content[slot], update->done)) {
		demand(tinyml_update_begin(update, &world.slots, files[file].bytes, false) == 0,
		       "begin fails");
	}
	resumed += update->done > 0u;
	world.ghost.sent[slot] = -1;
	world.ghost.rotten[slot] = false;  /* what it resumes was compared */
	if (world.ghost.kept_in == slot) { /* it had rotten away */
		world.ghost.kept = world.ghost.kept_in = -1;
	}
	world.clients[client].file = (int8_t)file;
	for (int i = 0; i < CLIENTS; i++) { /* whoever was sending before must notice */
		demand(i == client || world.clients[i].update.region == NULL ||
			       tinyml_update_write(&world.clients[i].update, NULL, 0) != 0,
		       "two updates at once");
	}
}

void part(int client)
{
	struct client *sender = &world.clients[client];
	const struct file *file = &files[sender->file];
	const uint32_t left = file->bytes - sender->update.done;
	const int slot = sender->update.region == world.slots.region ? 0 : 1;
	const bool current = sender->update.number == world.slots.updates;
	int error;

	doing = "part";
	error = tinyml_update_write(&sender->update, file->content[slot] + sender->update.done,
				    left < PART_BYTES ? left : PART_BYTES);
	demand(error == 0 || !current || tinyml_slots_free(&world.slots) != slot,
	       "part of an image is refused");
	demand(error != 0 || current, "part of an overtaken update is accepted");
	if (error != 0) {
		sender->file = -1;
		memset(&sender->update, 0, sizeof(sender->update));
	}
}

void finish(int client)
{
	struct client *sender = &world.clients[client];
	const int file = sender->file, slot = sender->update.region == world.slots.region ? 0 : 1;
	const int in_use = file_in_use();
	const bool current = sender->update.number == world.slots.updates &&
			     tinyml_slots_free(&world.slots) == slot;
	int error;

	doing = "finish";
	if (current && sender->update.done == files[file].bytes && file > in_use) {
		world.ghost.sent[slot] = (int8_t)file; /* or so it may be, if power fails */
	}
	error = tinyml_update_finish(&sender->update);
	demand(error != 0 || (current && memcmp(world.content[slot], files[file].content[slot],
						files[file].bytes) == 0),
	       "something else than was sent is complete");
	demand(error == 0 || !current || (file <= in_use && error == TINYML_SLOT_VERSION),
	       "an image is refused");
	demand(error != 0 || file > in_use, "an older model is accepted");
	sender->file = -1;
	memset(&sender->update, 0, sizeof(sender->update));
}

/* Power failed while a mark was written, so it may read as erased, yet the flash takes no second
 * write; or a bit of it has changed. Then an error is an honest answer. */
static bool marks_are_spoiled(int slot)
{
	const struct tinyml_slot_region *region = &world.slots.region[slot];

	if (world.ghost.rotten[slot]) {
		return true;
	}
	for (uint32_t at = slot_bytes - marks_bytes(region); at < slot_bytes; at++) {
		if (kind->once && world.units[slot][at / kind->write_bytes] == UNIT_TORN) {
			return true;
		}
	}
	return false;
}

void confirm(void)
{
	const int file = file_in_use(), slot = world.slots.active;
	int error;

	doing = "confirm";
	if (file >= 0) {
		world.ghost.maybe_kept |= (uint8_t)(1u << file);
	}
	error = tinyml_slots_confirm(&world.slots);
	if (file >= 0 && error == TINYML_SLOT_FLASH && marks_are_spoiled(slot)) {
		return;
	}
	demand(error == (file < 0 ? TINYML_SLOT_NONE : 0), "cannot confirm");
	if (file >= 0) {
		demand(!world.slots.on_trial, "confirmed, yet on trial");
		world.ghost.kept = (int8_t)file;
		world.ghost.kept_in = (int8_t)slot;
		world.ghost.maybe_kept = 0;
	}
}

void reject(void)
{
	const bool on_trial = world.slots.on_trial;
	const int slot = world.slots.active;
	int error;

	doing = "reject";
	error = tinyml_slots_reject(&world.slots);
	if (on_trial && error == TINYML_SLOT_FLASH && marks_are_spoiled(slot)) {
		return;
	}
	demand(error == (on_trial ? 0 : TINYML_SLOT_ORDER), "cannot reject");
	if (on_trial) {
		world.ghost.rejected[slot] = true;
		check_choice(world.slots.active >= 0 ? 0 : TINYML_SLOT_NONE);
	}
}

/* Whatever has happened, a start and one more update lead to the model that was sent. */
bool recover(int file, bool confirm_trial)
{
	bool tried;

	cut_at = 0;
	start();
	tried = world.slots.on_trial;
	if (tried) {
		if (confirm_trial) {
			confirm();
		} else {
			reject();
		}
	}
	for (int i = 0; world.slots.on_trial && i <= TINYML_SLOT_TRIALS; i++) {
		start(); /* where that could not be marked, trials end by themselves */
	}
	if (file_in_use() < file) {
		begin(0, file, true);
		while (world.clients[0].update.done < files[file].bytes) {
			part(0);
		}
		finish(0);
		open_again();
		demand(file == BAD || (file_in_use() == file && world.slots.on_trial),
		       "a new model is not tried");
		confirm();
		start();
		demand(file == BAD || (file_in_use() == file && !world.slots.on_trial),
		       "a confirmed model is not used");
	}
	return tried;
}
