/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Compares the check of each kernel with what the kernel touches. Records of real calls are changed
 * at random; those that the check accepts are played in memory of exactly the bytes that it states.
 * The check must refuse one byte less. Checks are compiled with other names for the functions by
 * which they state what calls read and write: rules_check_... instead of tinyml_check_... */

#include <string.h>

#include <tinyml/conv.h>

#include "packs.h"
#include "rules.h"

#include "../../plugin/tinyml/runtime/player/program.h"
#include "../../plugin/tinyml/runtime/slot/format.h"

#ifndef RULES_SHORT
#define RULES_SHORT 0u
#endif
#define WORK              20000u
#define ENOUGH            0x10000000u /* bytes of every memory, while extents are learned */
#define POSITION_OF(part) ((part) * RULES_ROOM)
#define TABLE             TINYML_PLAY_OPERANDS /* the part of the first table */
#define RECORD            (RULES_PARTS - 1)

void rules_check_reads(struct tinyml_check *check, uint32_t operand, uint32_t bytes,
		       uint32_t alignment);
void rules_check_writes(struct tinyml_check *check, uint32_t operand, uint32_t bytes,
			uint32_t alignment);
void rules_check_constants(struct tinyml_check *check, uint32_t position, uint32_t bytes,
			   uint32_t alignment);

static struct part parts[RULES_PARTS];
static bool learning;
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

static void learn(uint32_t part, uint32_t bytes, uint32_t alignment)
{
	if (learning && part < RULES_PARTS) {
		struct part *const p = &parts[part];

		/* RULES_SHORT: a rule that is too generous, which must be found */
		bytes = bytes > RULES_SHORT ? bytes - RULES_SHORT : 0u;
		p->used = true;
		p->bytes = bytes > p->bytes ? bytes : p->bytes;
		p->alignment = alignment > p->alignment ? alignment : p->alignment;
	}
}

void rules_check_reads(struct tinyml_check *check, uint32_t operand, uint32_t bytes,
		       uint32_t alignment)
{
	learn(operand, bytes, alignment);
	tinyml_check_reads(check, operand, bytes, alignment);
}

void rules_check_writes(struct tinyml_check *check, uint32_t operand, uint32_t bytes,
			uint32_t alignment)
{
	learn(operand, bytes, alignment);
	tinyml_check_writes(check, operand, bytes, alignment);
}

void rules_check_constants(struct tinyml_check *check, uint32_t position, uint32_t bytes,
			   uint32_t alignment)
{
	const uint32_t part = position / RULES_ROOM;

	learn(part, tinyml_check_plus(position - POSITION_OF(part), bytes), alignment);
	tinyml_check_constants(check, position, bytes, alignment);
}

/* A call of a real pack, with a record of its own. */
struct call {
	uint32_t number; /* in tinyml_play_kernels */
	uint32_t count;
	uint32_t operands[TINYML_PLAY_OPERANDS];
	uint32_t record[64];
	uint32_t record_bytes;
	const uint8_t *pack; /* that it was in */
	uint32_t pack_bytes;
};

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
	uint32_t skipped = wanted == 0u ? below(4) : 0u;

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
static bool take_call(struct call *call)
{
	const uint32_t wanted = below(2) != 0u ? 1u + below(kernel_count()) : 0u;
	uint32_t number = below(packs_seed_count);
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
static uint8_t contents[RULES_TABLES][RULES_ROOM] __attribute__((aligned(16)));

static void set_contents(const struct call *call, bool real)
{
	const uint8_t *const table = rules_tables[call->number];

	for (uint32_t i = 0; i < RULES_TABLES && table[i] != RULES_NO_TABLE; i++) {
		uint32_t position;

		memcpy(&position, (const uint8_t *)call->record + table[i], 4);
		if (real && position < call->pack_bytes) {
			const uint32_t left = call->pack_bytes - position;

			memset(contents[i], 0, RULES_ROOM);
			memcpy(contents[i], call->pack + position,
			       left < RULES_ROOM ? left : RULES_ROOM);
			continue;
		}
		for (uint32_t at = 0; at < RULES_ROOM / 4u; at++) {
			const uint32_t word = 1u + at * 2654435761u % 61u;

			memcpy(&contents[i][4u * at], &word, 4);
		}
	}
}

/* Another kernel with a record of this size, which may be the same structure. */
static void change_kernel(struct call *call)
{
	for (uint32_t left = 16; left > 0u; left--) {
		const uint32_t number = 1u + below(kernel_count());
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

	return below(8) == 0u ? edges[below(10)] : below(below(4) != 0u ? 12 : 40);
}

/* A call of any kernel, with small numbers in its record. */
static void invent(struct call *call)
{
	const uint32_t number = 1u + below(kernel_count()), size = below(2) != 0u ? 4u : 2u;

	call->number = number;
	call->count = tinyml_play_kernels[number].operands;
	call->record_bytes = tinyml_play_kernels[number].record_bytes;
	memset(call->operands, 0, sizeof(call->operands));
	memset(call->record, 0, sizeof(call->record));
	for (uint32_t at = 0; at < call->record_bytes; at += size) {
		((uint8_t *)call->record)[at] = (uint8_t)(1u + below(below(3) != 0u ? 4 : 20));
	}
}

/* If the record begins with a window: one that covers its input. */
static void cover(struct call *call)
{
	const int16_t height = (int16_t)(1u + below(6)), width = (int16_t)(1u + below(6)),
		      channels = (int16_t)(1u + below(20));
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
		window.stride_w = (int16_t)(1u + below(3));
		memcpy(call->record, &window, sizeof(window));
		memset((uint8_t *)call->record + sizeof(window) + 2u, 0, 2); /* weight_zero */
	}
}

static void change(struct call *call)
{
	uint8_t *const bytes = (uint8_t *)call->record;
	const uint8_t *table = rules_tables[call->number];

	for (uint32_t left = below(5); left > 0u; left--) {
		const uint32_t at = 2u * below(call->record_bytes / 2u);
		uint16_t half;

		memcpy(&half, &bytes[at], 2);
		half = (uint16_t)(below(3) == 0u ? half + below(5) - 2u : some());
		memcpy(&bytes[at], &half, 2);
	}
	if (below(8) == 0u) {
		bytes[below(call->record_bytes)] = (uint8_t)some();
	}
	for (uint32_t i = 0; i < RULES_TABLES && table[i] != RULES_NO_TABLE; i++) {
		const uint32_t position = POSITION_OF(TABLE + i);

		memcpy(&bytes[table[i]], &position, 4);
		memcpy(&rules_memory[position], contents[i], RULES_MOST);
	}
}

static bool accepts(const struct call *call, const uint32_t *operands, const uint32_t *steps,
		    uint32_t turns, const uint32_t sizes[4], uint32_t *work)
{
	struct tinyml_check check = {
		.image = rules_memory,
		.record = call->record,
		.operands = operands,
		.steps = steps,
		.turns = turns,
		.count = call->count,
		.bytes = {sizes[0], sizes[1], sizes[2], 0},
	};

	*work = tinyml_play_kernels[call->number].check(&check);
	return !check.wrong && check.stated == (1u << call->count) - 1u;
}

/* Every operand alone in its memory: exactly its bytes are enough, also with steps. */
static const char *check_operands(const struct call *call)
{
	uint32_t sizes[4] = {ENOUGH, ENOUGH, sizeof(rules_memory), 0}, work;

	for (uint32_t i = 0; i < call->count; i++) {
		uint32_t operands[TINYML_PLAY_OPERANDS], steps[TINYML_PLAY_OPERANDS] = {0};
		const uint32_t alignment = parts[i].alignment, position = 64u,
			       step = 3u * alignment;

		if (!parts[i].used) {
			continue; /* NULL */
		}
		for (uint32_t k = 0; k < call->count; k++) {
			operands[k] = call->operands[k] >> 30 == TINYML_PLAYER_NOTHING
					      ? call->operands[k]
					      : (uint32_t)TINYML_PLAYER_STATE << 30;
		}
		operands[i] = position;
		sizes[0] = position + parts[i].bytes;
		if (!accepts(call, operands, NULL, 1, sizes, &work)) {
			return "refused with enough bytes";
		}
		sizes[0]--;
		if (accepts(call, operands, NULL, 1, sizes, &work)) {
			return "accepted with one byte less";
		}
		steps[i] = step;
		sizes[0] = position + 4u * step + parts[i].bytes;
		if (!accepts(call, operands, steps, 5, sizes, &work)) {
			return "refused with enough bytes for its steps";
		}
		sizes[0]--;
		if (accepts(call, operands, steps, 5, sizes, &work)) {
			return "accepted with one byte less for its steps";
		}
		sizes[0] = ENOUGH;
		operands[i] = position + 1u;
		if (alignment > 1u && accepts(call, operands, NULL, 1, sizes, &work)) {
			return "accepted without alignment";
		}
	}
	return NULL;
}

/* The same for the tables of the record, in an image that ends with one of them. */
static const char *check_tables(struct call *call)
{
	uint8_t *const bytes = (uint8_t *)call->record;
	const uint8_t *const table = rules_tables[call->number];
	uint32_t sizes[4] = {ENOUGH, ENOUGH, 0, 0}, operands[TINYML_PLAY_OPERANDS], work;
	const char *wrong = NULL;

	for (uint32_t k = 0; k < call->count; k++) {
		operands[k] = call->operands[k];
	}
	for (uint32_t i = 0; i < RULES_TABLES && table[i] != RULES_NO_TABLE; i++) {
		const uint32_t before = POSITION_OF(TABLE + i), last = POSITION_OF(RULES_PARTS);

		if (!parts[TABLE + i].used || parts[TABLE + i].bytes == 0u) {
			continue;
		}
		memcpy(&bytes[table[i]], &last, 4);
		memcpy(&rules_memory[last], contents[i], RULES_MOST);
		sizes[2] = last + parts[TABLE + i].bytes;
		if (!accepts(call, operands, NULL, 1, sizes, &work)) {
			wrong = "refused with its whole table";
		}
		sizes[2]--;
		if (accepts(call, operands, NULL, 1, sizes, &work)) {
			wrong = "accepted with a table that is cut off";
		}
		memcpy(&bytes[table[i]], &before, 4);
	}
	return wrong;
}

/* Contents of all parts but the record: what checks have read in tables, and anything. */
static void fill(uint32_t seed)
{
	const uint32_t before = state;

	state = seed;
	for (uint32_t i = 0; i < RECORD; i++) {
		if (parts[i].used && i >= TABLE) {
			memcpy(parts[i].at, contents[i - TABLE], parts[i].bytes);
			continue;
		}
		for (uint32_t byte = 0; parts[i].used && byte < parts[i].bytes; byte++) {
			parts[i].at[byte] = (uint8_t)any();
		}
	}
	state = before;
}

static uint32_t results(void)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < RECORD; i++) {
		for (uint32_t byte = 0; parts[i].used && byte < parts[i].bytes; byte++) {
			sum = (sum << 5 | sum >> 27) + parts[i].at[byte];
		}
	}
	return sum;
}

static void place(struct call *call)
{
	uint8_t *const bytes = (uint8_t *)call->record;
	const uint8_t *const table = rules_tables[call->number];
	const bool exactly = below(2) != 0u;

	parts[RECORD] = (struct part){.bytes = call->record_bytes, .alignment = 4, .used = true};
	for (uint32_t i = 0; i < RULES_PARTS; i++) {
		if (parts[i].used) {
			parts[i].at = rules_place(i, parts[i].bytes, parts[i].alignment, exactly);
		}
	}
	for (uint32_t i = 0; i < RULES_TABLES && table[i] != RULES_NO_TABLE; i++) {
		if (parts[TABLE + i].used) {
			const uint32_t position = (uint32_t)(parts[TABLE + i].at - rules_memory);

			memcpy(&bytes[table[i]], &position, 4);
		}
	}
	memcpy(parts[RECORD].at, call->record, call->record_bytes);
}

static const char *make(const struct call *call)
{
	struct tinyml_play play = {
		.kernel = &tinyml_play_kernels[call->number],
		.image = rules_memory,
		.record = parts[RECORD].at,
	};
	const uint32_t seed = any() | 1u;
	uint32_t sums[2] = {0, 0};

	for (uint32_t i = 0; i < call->count; i++) {
		play.operand[i] = parts[i].used ? parts[i].at : NULL;
	}
	for (uint32_t turn = 0; turn < (rules_finds_reads ? 1u : 2u); turn++) {
		fill(seed);
		rules_forbid(parts, turn);
		play.kernel->play(&play);
		if (!rules_allow(parts, turn)) {
			return "it wrote outside";
		}
		sums[turn] = results();
	}
	return rules_finds_reads || sums[0] == sums[1] ? NULL : "it used what is outside";
}

const char *rules_try(uint32_t start, uint32_t number, uint32_t *kernel)
{
	static const uint32_t sizes[4] = {ENOUGH, ENOUGH, sizeof(rules_memory), 0};
	struct call call;
	const char *wrong;
	uint32_t work, taken;

	*kernel = 0;
	state = (start * 2654435761u) ^ (number * 2246822519u) ^ 0x9e3779b9u;
	state = state != 0u ? state : 1u;
	(void)any();
	memset(parts, 0, sizeof(parts));
	if (!take_call(&call)) {
		return "a real call is not known";
	}
	taken = call.number;
	switch (below(8)) {
	case 0:
		invent(&call);
		break;
	case 1:
	case 2:
		change_kernel(&call);
		break;
	case 3:
		invent(&call);
		cover(&call);
		break;
	case 4:
		three_by_three(&call);
		change_kernel(&call);
		break;
	default:
		break;
	}
	set_contents(&call, call.number == taken && below(4) != 0u);
	change(&call);
	learning = true;
	if (!accepts(&call, call.operands, NULL, 1, sizes, &work)) {
		learning = false;
		return NULL;
	}
	learning = false;
	for (uint32_t i = 0; i < RULES_PARTS; i++) {
		if (parts[i].bytes > RULES_MOST) {
			return NULL;
		}
	}
	if (work > WORK) {
		return NULL;
	}
	wrong = RULES_SHORT != 0u ? NULL : check_operands(&call);
	wrong = wrong != NULL || RULES_SHORT != 0u ? wrong : check_tables(&call);
	if (wrong != NULL) {
		*kernel = call.number;
		return wrong;
	}
	*kernel = call.number;
	place(&call);
	return make(&call);
}
