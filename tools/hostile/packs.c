/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Changes real packs, opens them and, if the player accepts them, runs them. Everything follows
 * from a seed and the number of a pack, on any machine. tools/hostile_packs.py builds this file for
 * the host and for emulated cores. */

#include <string.h>

#include "packs.h"

#include "../../plugin/tinyml/runtime/player/program.h"
#include "../../plugin/tinyml/runtime/slot/format.h"

#define WORK        60000u
#define MOST_TENSOR 9
#define HEADER      ((uint32_t)sizeof(struct container_header))

/* Numbers at which checks may go wrong. */
static const uint32_t edges[] = {
	0,           1,           2,           3,           4,           5,           7,
	8,           15,          16,          17,          31,          32,          33,
	63,          64,          127,         128,         255,         256,         257,
	4095,        4096,        0x7ffe,      0x7fff,      0x8000,      0x8001,      0xfffe,
	0xffff,      0x10000,     0x10001,     0x7fff7fff,  0x80008000u, 0x00010001,  0xffff0001u,
	0x0001ffff,  0x3ffffffe,  0x3fffffff,  0x40000000,  0x7ffffffc,  0x7fffffff,  0x80000000u,
	0x80000001u, 0xbfffffffu, 0xc0000000u, 0xc0000001u, 0xfffffff0u, 0xfffffffcu, 0xffffffffu,
};

static uint32_t state;

static uint32_t any(void)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state;
}

static uint32_t below(uint32_t limit)
{
	return any() % limit;
}

static uint32_t edge(void)
{
	return edges[below(sizeof(edges) / sizeof(edges[0]))];
}

/* A pack that is being changed. */
struct pack {
	uint8_t *image;
	uint32_t bytes;
	uint32_t most; /* bytes that there is room for */
};

static uint32_t *word_at(const struct pack *pack, uint32_t position)
{
	return (uint32_t *)(void *)(pack->image + (position & ~3u));
}

static struct descriptor *descriptor_of(const struct pack *pack)
{
	return (void *)(pack->image + HEADER);
}

/* The program, if it is where the descriptor says. */
static struct tinyml_program *program_of(const struct pack *pack)
{
	const uint32_t at = descriptor_of(pack)->run;

	return at % 4u == 0u && at >= HEADER && at <= pack->bytes - sizeof(struct tinyml_program)
		       ? (void *)(pack->image + at)
		       : NULL;
}

static bool has_calls(const struct pack *pack, const struct tinyml_program *program)
{
	return program != NULL && program->run % 4u == 0u && program->run < pack->bytes &&
	       program->run_words > 0u && program->run_words <= (pack->bytes - program->run) / 4u;
}

/* Where a change goes: anywhere, or where it means something. */
static uint32_t place(const struct pack *pack)
{
	const struct tinyml_program *program = program_of(pack);
	const uint32_t kind = below(16);
	uint32_t at = 4u * below(pack->bytes / 4u);

	if (kind == 1u || program == NULL) {
		at = 4u * below(64);
	} else if (kind == 2u) {
		at = descriptor_of(pack)->run + 4u * below(sizeof(*program) / 4u);
	} else if (kind == 3u) { /* of an input or output */
		at = descriptor_of(pack)->tensors + 4u * below(14);
	} else if (kind >= 4u && has_calls(pack, program)) {
		at = program->run + 4u * below(program->run_words);
		if (kind >= 7u) { /* a record, if this is its position */
			at = (*word_at(pack, at) & 0x3fffffffu) + 4u * below(16);
		}
	}
	return at < pack->bytes ? at : 4u * below(pack->bytes / 4u);
}

static void change_word(const struct pack *pack)
{
	uint32_t *const word = word_at(pack, place(pack));
	uint32_t *const other = word_at(pack, place(pack));
	uint16_t *const half = (uint16_t *)(void *)word + below(2);
	const uint32_t before = *word;

	switch (below(10)) {
	case 0:
		*word ^= 1u << below(32);
		break;
	case 1:
		*word = edge();
		break;
	case 2:
	case 3:
		*half = (uint16_t)edge();
		break;
	case 4:
		*word += below(33) - 16u;
		break;
	case 5:
		*half = (uint16_t)(*half + below(9) - 4u);
		break;
	case 6:
		*word = any();
		break;
	case 7:
		*word = *other;
		*other = before;
		break;
	case 8: /* another memory, or near the end of one */
		*word = (any() & 0xc0000000u) | below(pack->bytes + 8u);
		break;
	default:
		((uint8_t *)word)[below(4)] = (uint8_t)any();
	}
}

/* Make room for, or remove, words before a place in the calls; returns whether that worked. */
static bool shift_calls(struct pack *pack, uint32_t at, int32_t words)
{
	const uint32_t bytes = 4u * (uint32_t)(words < 0 ? -words : words);
	struct tinyml_program *const program = program_of(pack);
	struct container_header *const header = (void *)pack->image;

	if (words > 0) {
		if (pack->bytes + bytes > pack->most) {
			return false;
		}
		memmove(pack->image + at + bytes, pack->image + at, pack->bytes - at);
		pack->bytes += bytes;
	} else {
		if (at + bytes > pack->bytes) {
			return false;
		}
		memmove(pack->image + at, pack->image + at + bytes, pack->bytes - at - bytes);
		pack->bytes -= bytes;
	}
	header->payload_bytes = pack->bytes - HEADER;
	program->run_words += (uint32_t)words;
	program->reset += program->reset > at ? 4u * (uint32_t)words : 0u;
	return true;
}

static void change_calls(struct pack *pack)
{
	const struct tinyml_program *const program = program_of(pack);
	uint32_t at, words, first;

	if (!has_calls(pack, program)) {
		return;
	}
	at = program->run + 4u * below(program->run_words);
	words = 1u + below(6);
	switch (below(7)) {
	case 0: /* insert */
		if (shift_calls(pack, at, (int32_t)words)) {
			for (uint32_t i = 0; i < words; i++) {
				*word_at(pack, at + 4u * i) = below(2) != 0u ? edge() : any();
			}
		}
		break;
	case 1: /* remove */
		shift_calls(pack, at, -(int32_t)words);
		break;
	case 2: /* all calls twice */
	case 3: /* or a repetition around all of them, or around some words */
		first = program->run;
		words = program->run_words;
		if (below(2) == 0u) {
			if (shift_calls(pack, first, 2)) {
				*word_at(pack, first) = (1u + below(below(2) != 0u ? 3 : 65535))
							<< 16;
				*word_at(pack, first + 4u) = words - below(2) * below(4);
			}
		} else if (shift_calls(pack, first, (int32_t)words)) {
			memcpy(pack->image + first, pack->image + first + 4u * words, 4u * words);
		}
		break;
	case 4: /* the reset runs the calls, or a part of them */
		program_of(pack)->reset = below(2) != 0u ? program->run : at;
		program_of(pack)->reset_words = below(program->run_words + 2u);
		break;
	case 5: /* a loop around all calls, or some words; its record comes before it */
		first = program->run;
		words = program->run_words;
		if (shift_calls(pack, first, 6) && program_of(pack) != NULL) {
			program_of(pack)->run = first + 12u;
			program_of(pack)->run_words -= 3u;
			*word_at(pack, first) = below(4) != 0u ? 1u + below(4) : edge();
			*word_at(pack, first + 4u) = words - below(2) * below(words);
			*word_at(pack, first + 8u) = below(2) | below(2) << 16;
			*word_at(pack, first + 12u) = CALL_FORM(1u, below(8) == 0u);
			*word_at(pack, first + 16u) = first;
			*word_at(pack, first + 20u) =
				below(2) != 0u ? 0xc0000000u : below(pack->bytes + 8u);
		}
		break;
	default:                      /* steps for a call that has none */
		first = program->run; /* moving calls may move the program, too */
		if ((*word_at(pack, first) & 0x2000u) == 0u) {
			words = (*word_at(pack, first) >> 10) & 7u;
			at = first + 8u + 4u * words;
			if (at <= pack->bytes && shift_calls(pack, at, (int32_t)words)) {
				*word_at(pack, first) |= 0x2000u;
				for (uint32_t i = 0; i < words; i++) {
					*word_at(pack, at + 4u * i) =
						below(4) != 0u ? 4u * below(8) : edge();
				}
			}
		}
	}
}

/* A block of words from one place to another: records of other kernels, tensors. */
static void change_block(const struct pack *pack)
{
	const uint32_t from = place(pack) & ~3u, to = place(pack) & ~3u,
		       bytes = 4u * (1u + below(16));

	if (from + bytes <= pack->bytes && to + bytes <= pack->bytes) {
		memmove(pack->image + to, pack->image + from, bytes);
	}
}

/* The sum and the sizes, as the compiler would write them, so that later checks are reached. */
static void mend(const struct pack *pack)
{
	struct container_header *const header = (void *)pack->image;
	struct descriptor *const descriptor = descriptor_of(pack);
	struct tinyml_program *const program = program_of(pack);
	const uint32_t *const words = (const void *)pack->image;
	uint32_t sum = 0, skipped;

	if (program == NULL) {
		return;
	}
	header->magic = MCUBOOT_MAGIC;
	header->header_bytes = (uint16_t)HEADER;
	header->payload_bytes = (pack->bytes - HEADER) & ~3u;
	descriptor->magic = SLOT_MAGIC;
	descriptor->format = TINYML_SLOT_FORMAT;
	descriptor->interface = TINYML_PLAYER_INTERFACE;
	program->format = PROGRAM_FORMAT;
	if (program->layouts > TINYML_PLAY_LAYOUTS) {
		program->layouts = TINYML_PLAY_LAYOUTS;
	}
	if (below(4) != 0u) {
		program->work = UINT32_MAX;
	}
	skipped = descriptor->run / 4u;
	for (uint32_t i = HEADER / 4u; i < pack->bytes / 4u; i++) {
		if (i != skipped) {
			sum = (sum >> 1 | sum << 31) + words[i];
		}
	}
	program->sum = sum;
}

/* Some are left as they are: these the player must accept. */
static bool stays_whole(uint32_t number)
{
	return number % 64u == 0u;
}

static void make(struct pack *pack, const struct seed *seed, uint32_t number)
{
	const uint32_t changes = stays_whole(number) ? 0u : 1u + below(4) / 2u * below(3);
	uint32_t kind;

	memcpy(pack->image, seed->words, seed->bytes);
	pack->bytes = seed->bytes;
	for (uint32_t i = 0; i < changes; i++) {
		kind = below(8);
		if (below(16) == 0u && program_of(pack) != NULL) {
			program_of(pack)->layouts = (uint8_t)below(TINYML_PLAY_LAYOUTS + 1u);
		} else if (kind == 0u) {
			change_calls(pack);
		} else if (kind == 1u) {
			change_block(pack);
		} else {
			change_word(pack);
		}
	}
	if (number % 2u == 0u) {
		mend(pack);
	} else if (below(16) == 0u) { /* cut off */
		pack->bytes = below(pack->bytes + 1u);
	}
}

static int never(void)
{
	return 0;
}

static void nothing(void)
{
}

/* Fill inputs, run, and see whether a guard or the image changed. */
static const char *run(struct tinyml_player *player, const struct pack *pack)
{
	const uint32_t before = packs_sum(pack->image, pack->bytes);

	for (uint32_t turn = 0; turn < 2u; turn++) {
		int error;

		for (uint32_t i = 0; i < player->model.input_count; i++) {
			const struct tinyml_tensor *const tensor = &player->model.inputs[i];

			for (uint32_t byte = 0; byte < tensor->bytes; byte++) {
				((uint8_t *)tensor->data)[byte] = (uint8_t)any();
			}
		}
		error = tinyml_player_run(player);
		if (error != 0 && error != TINYML_EBOUND) {
			return "a run failed";
		}
		tinyml_player_reset(player);
	}
	return packs_sum(pack->image, pack->bytes) == before ? NULL : "the image changed";
}

const char *packs_try(uint32_t start, uint32_t number, int *error)
{
	const struct seed *seed;
	struct tinyml_tensor tensors[MOST_TENSOR];
	struct tinyml_player player = {
		.tensors = tensors,
		.run_model = never,
		.reset_model = nothing,
		.work_limit = WORK,
		.tensor_count = MOST_TENSOR,
	};
	struct pack pack;
	const char *wrong;

	state = (start * 2654435761u) ^ (number * 2246822519u) ^ 0x9e3779b9u;
	state = state != 0u ? state : 1u;
	(void)any();
	seed = &packs_seeds[below(packs_seed_count)];
	player.arena_bytes = seed->arena_bytes;
	player.state_bytes = seed->state_bytes;
	packs_memory(seed, &pack.image, &pack.most, &player.memory[TINYML_PLAYER_ARENA],
		     &player.memory[TINYML_PLAYER_STATE]);
	make(&pack, seed, number);
	packs_limit(pack.bytes, seed->arena_bytes, seed->state_bytes);
	*error = tinyml_player_open(&player, pack.image, pack.bytes);
	if (*error != 0 && stays_whole(number)) {
		return "a real pack was refused";
	}
	if (*error != 0) {
		return packs_guards();
	}
	packs_limit(pack.bytes, player.model.arena_bytes, seed->state_bytes);
	wrong = run(&player, &pack);
	return wrong != NULL ? wrong : packs_guards();
}
