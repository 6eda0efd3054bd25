/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Calls to try: those of real packs, changed at random. */

#include "rules_calls.h"

#include <string.h>

#include <tinyml/conv.h>

#include "packs.h"
#include "rules.h"

#include "../../plugin/tinyml/runtime/player/program.h"
#include "../../plugin/tinyml/runtime/slot/format.h"

uint32_t rules_state;

uint32_t rules_any(void)
{
	rules_state ^= rules_state << 13;
	rules_state ^= rules_state >> 17;
	rules_state ^= rules_state << 5;
	return rules_state;
}

uint32_t rules_below(uint32_t limit)
{
	return rules_any() % limit;
}

static uint32_t kernel_count(void)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < tinyml_play_index_count; i++) {
		most = tinyml_play_index[i] > most ? tinyml_play_index[i] : most;
	}
	return most;
}

/* The call of kernel `wanted` in a pack, or any call if that is 0; NULL if there is none. */
static const uint32_t *find_call(const struct seed *seed, uint32_t wanted)
{
	const uint8_t *const image = (const void *)seed->words;
	const struct descriptor *const descriptor =
		(const void *)(image + sizeof(struct container_header));
	const struct tinyml_program *const program = (const void *)(image + descriptor->run);
	const uint32_t *at = (const void *)(image + program->run);
	const uint32_t *const end = at + program->run_words;
	uint32_t skipped = wanted == 0u ? rules_below(4) : 0u;

	while (at != end) {
		const uint32_t words = 2u + CALL_COUNT(at[0]) * (CALL_STRIDED(at[0]) ? 2u : 1u);

		if (CALL_KERNEL(at[0]) == CALL_REPEAT) {
			at += 2;
			continue;
		}
		if (wanted == 0u ? skipped-- == 0u || at + words == end
				 : tinyml_play_index[CALL_KERNEL(at[0])] == wanted) {
			return at;
		}
		at += words;
	}
	return NULL;
}

/* Any call, or one of any kernel that packs have. */
static bool take_real(struct call *call)
{
	const uint32_t wanted = rules_below(2) != 0u ? 1u + rules_below(kernel_count()) : 0u;
	uint32_t number = rules_below(packs_seed_count);
	const uint32_t *at = find_call(&packs_seeds[number], wanted);
	const uint8_t *image;

	for (uint32_t left = packs_seed_count; at == NULL && left > 0u; left--) {
		number = (number + 1u) % packs_seed_count;
		at = find_call(&packs_seeds[number], wanted);
	}
	at = at != NULL ? at : find_call(&packs_seeds[number], 0);
	image = (const void *)packs_seeds[number].words;
	call->pack = image;
	call->pack_bytes = packs_seeds[number].bytes;
	call->number = tinyml_play_index[CALL_KERNEL(at[0])];
	call->count = CALL_COUNT(at[0]);
	call->record_bytes = tinyml_play_kernels[call->number].record_bytes;
	for (uint32_t i = 0; i < call->count; i++) {
		call->operands[i] = at[2u + i] & 0xc0000000u;
	}
	memcpy(call->record, image + at[1], call->record_bytes);
	return call->number != 0u && call->record_bytes <= sizeof(call->record);
}

/* What tables have in them, for checks that look: small words, or what they have in the pack. */
uint8_t rules_contents[RULES_TABLES][RULES_ROOM] __attribute__((aligned(16)));

static void set_contents(const struct call *call, bool real)
{
	const uint8_t *const table = rules_tables[call->number];

	for (uint32_t i = 0; i < RULES_TABLES && table[i] != RULES_NO_TABLE; i++) {
		uint32_t position;

		memcpy(&position, (const uint8_t *)call->record + table[i], 4);
		if (real && position < call->pack_bytes) {
			const uint32_t left = call->pack_bytes - position;

			memset(rules_contents[i], 0, RULES_ROOM);
			memcpy(rules_contents[i], call->pack + position,
			       left < RULES_ROOM ? left : RULES_ROOM);
			continue;
		}
		for (uint32_t at = 0; at < RULES_ROOM / 4u; at++) {
			const uint32_t word = 1u + at * 2654435761u % 61u;

			memcpy(&rules_contents[i][4u * at], &word, 4);
		}
	}
}

/* Another kernel with a record of this size, which may be the same structure. */
static void change_kernel(struct call *call)
{
	for (uint32_t left = 16; left > 0u; left--) {
		const uint32_t number = 1u + rules_below(kernel_count());
		const struct tinyml_play_kernel *const kernel = &tinyml_play_kernels[number];

		if (kernel->record_bytes == call->record_bytes && kernel->operands == call->count) {
			call->number = number;
			return;
		}
	}
}

static uint32_t some(void)
{
	static const uint16_t edges[] = {0, 1, 2, 127, 128, 255, 256, 32767, 32768, 65535};

	return rules_below(8) == 0u ? edges[rules_below(10)]
				    : rules_below(rules_below(4) != 0u ? 12 : 40);
}

/* A call of any kernel, with small numbers in its record. */
static void invent(struct call *call)
{
	const uint32_t number = 1u + rules_below(kernel_count()),
		       size = rules_below(2) != 0u ? 4u : 2u;

	call->number = number;
	call->count = tinyml_play_kernels[number].operands;
	call->record_bytes = tinyml_play_kernels[number].record_bytes;
	memset(call->operands, 0, sizeof(call->operands));
	memset(call->record, 0, sizeof(call->record));
	for (uint32_t at = 0; at < call->record_bytes; at += size) {
		((uint8_t *)call->record)[at] =
			(uint8_t)(1u + rules_below(rules_below(3) != 0u ? 4 : 20));
	}
}

/* If the record begins with a window: one that covers its input. */
static void cover(struct call *call)
{
	const int16_t height = (int16_t)(1u + rules_below(6)),
		      width = (int16_t)(1u + rules_below(6)),
		      channels = (int16_t)(1u + rules_below(20));
	const struct tinyml_window window = {
		.batches = 1,
		.in_h = height,
		.in_w = width,
		.in_c = channels,
		.out_h = 1,
		.out_w = 1,
		.out_c = channels,
		.kernel_h = height,
		.kernel_w = width,
		.stride_h = 1,
		.stride_w = 1,
		.dilation_h = 1,
		.dilation_w = 1,
	};

	if (call->record_bytes >= sizeof(window)) {
		memcpy(call->record, &window, sizeof(window));
	}
}

/* If the record begins with a window: a kernel of 3x3, which many loops are for. */
static void three_by_three(struct call *call)
{
	struct tinyml_window window;

	if (call->record_bytes >= sizeof(window) + 10u) {
		memcpy(&window, call->record, sizeof(window));
		window.kernel_h = 3;
		window.kernel_w = 3;
		window.dilation_h = 1;
		window.dilation_w = 1;
		window.stride_w = (int16_t)(1u + rules_below(3));
		memcpy(call->record, &window, sizeof(window));
		memset((uint8_t *)call->record + sizeof(window) + 2u, 0, 2); /* weight_zero */
	}
}

static void change(struct call *call)
{
	uint8_t *const bytes = (uint8_t *)call->record;
	const uint8_t *table = rules_tables[call->number];

	for (uint32_t left = rules_below(5); left > 0u; left--) {
		const uint32_t at = 2u * rules_below(call->record_bytes / 2u);
		uint16_t half;

		memcpy(&half, &bytes[at], 2);
		half = (uint16_t)(rules_below(3) == 0u ? half + rules_below(5) - 2u : some());
		memcpy(&bytes[at], &half, 2);
	}
	if (rules_below(8) == 0u) {
		bytes[rules_below(call->record_bytes)] = (uint8_t)some();
	}
	for (uint32_t i = 0; i < RULES_TABLES && table[i] != RULES_NO_TABLE; i++) {
		const uint32_t position = RULES_POSITION(RULES_TABLE + i);

		memcpy(&bytes[table[i]], &position, 4);
		memcpy(&rules_memory[position], rules_contents[i], RULES_MOST);
	}
}

bool rules_take_call(struct call *call)
{
	uint32_t taken;

	if (!take_real(call)) {
		return false;
	}
	taken = call->number;
	switch (rules_below(8)) {
	case 0:
		invent(call);
		break;
	case 1:
	case 2:
		change_kernel(call);
		break;
	case 3:
		invent(call);
		cover(call);
		break;
	case 4:
		three_by_three(call);
		change_kernel(call);
		break;
	default:
		break;
	}
	set_contents(call, call->number == taken && rules_below(4) != 0u);
	change(call);
	return true;
}
