/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Every order of steps, with power failing in every operation of each, from erased flash on and
 * from a model that was confirmed. The arguments of explore() limit the updates that begin, the
 * power failures, the bits that change and the clients of each path. Within these limits the search
 * is complete. */

#include <stdlib.h>
#include <string.h>

#include "format.h" /* of runtime/slot */
#include "marks.h"
#include "slot_model.h"

static unsigned int most_begins, most_cuts, most_rots, most_clients;
static unsigned long states, steps, recoveries;

/* --- the path to the present state, for messages -----------------------------------------------
 */

#define DEEPEST 400

static struct {
	char text[48];
} path[DEEPEST];
static unsigned int depth;

void print_path(FILE *to)
{
	for (unsigned int i = 0; i < depth; i++) {
		fprintf(to, "%s%s", i == 0u ? "  after: " : "; ", path[i].text);
	}
	fprintf(to, "\n");
}

/* --- states that were seen ---------------------------------------------------------------------
 */

static uint64_t *seen;
static uint64_t seen_room = 1u << 16, seen_count;

static uint64_t hash(uint64_t value, const void *data, size_t bytes)
{
	const uint8_t *from = data;
	uint64_t word;

	for (; bytes >= 8u; bytes -= 8u, from += 8) {
		memcpy(&word, from, 8);
		value = (value ^ word) * 0x9fb21c651e98df25u;
		value ^= value >> 32;
	}
	for (; bytes > 0u; bytes--) {
		value = (value ^ *from++) * 0x100000001b3u;
	}
	return value ^ value >> 29;
}

/* What the future depends on. */
static uint64_t key_of(void)
{
	const struct world *w = &world;
	uint64_t key = 0x6a09e667f3bcc908u;
	uint8_t facts[24] = {w->slots.slot != NULL,
			     (uint8_t)w->slots.active,
			     w->slots.on_trial,
			     w->off,
			     w->cuts,
			     w->rots,
			     w->begins,
			     (uint8_t)w->waiting_bytes,
			     (uint8_t)w->waiting_at,
			     (uint8_t)(w->waiting_at >> 8)};

	for (int i = 0; i < 2; i++) {
		key = hash(key, w->content[i], slot_bytes);
		key = hash(key, w->units[i], slot_bytes / kind->write_bytes);
	}
	for (int i = 0; i < CLIENTS; i++) {
		const struct tinyml_update *update = &w->clients[i].update;
		uint8_t *fact = facts + 10 + 6 * i;

		if (w->clients[i].file < 0) {
			continue;
		}
		fact[0] = (uint8_t)(1 + w->clients[i].file);
		fact[1] = update->region == w->slots.region ? 1 : 2;
		fact[2] = update->number == w->slots.updates;
		fact[3] = (uint8_t)update->done;
		fact[4] = (uint8_t)(update->done >> 8);
	}
	key = hash(key, facts, sizeof(facts));
	key = hash(key, w->waiting, w->waiting_bytes);
	return hash(key, &w->ghost, sizeof(w->ghost));
}

static void put(uint64_t *table, uint64_t room, uint64_t key)
{
	uint64_t at = key & (room - 1u);

	while (table[at] != 0u && table[at] != key) {
		at = (at + 1u) & (room - 1u);
	}
	table[at] = key;
}

static bool is_new(uint64_t key)
{
	uint64_t at;

	key = key == 0u ? 1u : key;
	if (seen == NULL || 2u * seen_count >= seen_room) {
		uint64_t room = 2u * seen_room, *table = calloc(room, sizeof(*table));

		for (at = 0; seen != NULL && at < seen_room; at++) {
			if (seen[at] != 0u) {
				put(table, room, seen[at]);
			}
		}
		free(seen);
		seen = table;
		seen_room = room;
	}
	for (at = key & (seen_room - 1u); seen[at] != 0u; at = (at + 1u) & (seen_room - 1u)) {
		if (seen[at] == key) {
			return false;
		}
	}
	seen[at] = key;
	seen_count++;
	return true;
}

/* --- steps --------------------------------------------------------------------------------------
 */

enum what { START, OPEN, CONFIRM, REJECT, BEGIN, PART, FINISH, ROT };

struct step {
	enum what what;
	int client, file;
	bool resume;
	uint32_t place; /* of rot: slot, then one of several places */
};

#define ROT_PLACES 14u

/* Bits that change by themselves: in the parts of the header, in the image, in each mark; or a
 * header that is erased. */
static void rot(uint32_t place)
{
	static const uint32_t header[] = {0, 4, 12, 20, 200};
	const int slot = (int)(place / ROT_PLACES);
	const struct tinyml_slot_region *region = &world.slots.region[slot];

	place %= ROT_PLACES;
	world.ghost.rotten[slot] = true;
	if (place < 5u) {
		damage(slot, header[place], place == 3u ? 0x40 : 0x08);
	} else if (place < 5u + MARK_COUNT) {
		const uint32_t stride = marks_bytes(region) / MARK_COUNT;

		damage(slot, slot_bytes - (MARK_COUNT - (place - 5u)) * stride + 3u, 0x04);
	} else {
		for (uint32_t i = 0; i < sizeof(struct container_header); i++) {
			damage(slot, i, (uint8_t)~world.content[slot][i]);
		}
	}
}

static void perform(const struct step *step)
{
	switch (step->what) {
	case START:
		start();
		break;
	case OPEN:
		open_again();
		break;
	case CONFIRM:
		confirm();
		break;
	case REJECT:
		reject();
		break;
	case BEGIN:
		world.begins++;
		begin(step->client, step->file, step->resume);
		break;
	case PART:
		part(step->client);
		break;
	case FINISH:
		finish(step->client);
		break;
	default:
		world.rots++;
		rot(step->place);
		start();
		break;
	}
}

static void note(const struct step *step, long cut)
{
	static const char *const names[] = {"start", "open", "confirm", "reject",
					    "begin", "part", "finish",  "rot"};
	char *text = path[depth].text;
	int used = snprintf(text, sizeof(path[0].text), "%s", names[step->what]);

	if (step->what == BEGIN) {
		used += snprintf(text + used, sizeof(path[0].text) - (size_t)used, " %d%s",
				 step->file + 1, step->resume ? " resume" : "");
	}
	if (step->what == BEGIN || step->what == PART || step->what == FINISH) {
		used += snprintf(text + used, sizeof(path[0].text) - (size_t)used, " by %d",
				 step->client);
	}
	if (step->what == ROT) {
		used += snprintf(text + used, sizeof(path[0].text) - (size_t)used, " %u",
				 (unsigned int)step->place);
	}
	if (cut != 0) {
		snprintf(text + used, sizeof(path[0].text) - (size_t)used, " (cut %ld, tear %d)",
			 cut, tear);
	}
}

/* From flash as power failure left it: the update can be resumed, and a newer model can be sent. */
static void check_recovery(void)
{
	struct world *before = malloc(sizeof(world));
	const int8_t *sent = world.ghost.last_sent;
	const int files_to_try[3] = {NEWEST, sent[0], sent[1] == sent[0] ? -1 : sent[1]};

	memcpy(before, &world, sizeof(world));
	for (int i = 0; i < 3; i++) {
		bool again = files_to_try[i] >= 0;

		for (int kept = 1; again; kept--) {
			/* Once more if a model was on trial, which is then rejected. */
			again = recover(files_to_try[i], kept != 0) && kept != 0;
			recoveries++;
			memcpy(&world, before, sizeof(world));
			mirror_flash();
		}
	}
	free(before);
}

static void visit(void);

/* One step, undisturbed, then with power failing in each of its operations. */
static void take(const struct step *step)
{
	struct world *before = malloc(sizeof(world));
	volatile bool finished = false;

	demand(depth < DEEPEST, "paths are too long");
	memcpy(before, &world, sizeof(world));
	for (volatile long cut = 0; !finished; cut++) {
		for (volatile int way = 0; way < (cut == 0 ? 1 : TEARS) && !finished; way++) {
			if (cut > 0 && before->cuts >= most_cuts) {
				finished = true;
				break;
			}
			operation = 0;
			cut_at = cut;
			tear = way;
			steps++;
			if (setjmp(power_failure) == 0) {
				note(step, cut);
				perform(step);
				finished = cut > 0;
			} else {
				note(step, cut);
				world.cuts++;
				world.off = true;
			}
			cut_at = 0;
			if (cut == 0 || !finished) {
				depth++;
				visit();
				depth--;
			}
			memcpy(&world, before, sizeof(world));
			mirror_flash();
		}
	}
	free(before);
}

static void take_simple(enum what what)
{
	struct step step = {.what = what};

	take(&step);
}

static void visit(void)
{
	struct step step = {0};

	if (world.off) { /* nothing but flash is left */
		power_on();
		world.off = true;
	}
	if (!is_new(key_of())) {
		return;
	}
	states++;
	check_recovery();
	take_simple(START);
	if (world.off) {
		return;
	}
	take_simple(OPEN);
	take_simple(CONFIRM);
	take_simple(REJECT);
	for (step.client = 0; step.client < (int)most_clients; step.client++) {
		const struct client *client = &world.clients[step.client];

		if (client->file >= 0) {
			step.what = client->update.done < files[client->file].bytes ? PART : FINISH;
			take(&step);
		}
		for (int i = 0; i < 2 * NEWEST && world.begins < most_begins; i++) {
			step.what = BEGIN;
			step.file = i / 2;
			step.resume = i % 2 != 0;
			take(&step);
		}
	}
	step.what = ROT;
	for (step.place = 0; step.place < 2u * ROT_PLACES && world.rots < most_rots; step.place++) {
		take(&step);
	}
}

void explore(unsigned int begins, unsigned int cuts, unsigned int rots, unsigned int clients)
{
	most_begins = begins;
	most_cuts = cuts;
	most_rots = rots;
	most_clients = clients;
	visit();
	recover(0, true); /* and from a device that has a model */
	visit();
	printf("%lu states, %lu steps, %lu recoveries, %lu resumed\n", states, steps, recoveries,
	       resumed);
}
