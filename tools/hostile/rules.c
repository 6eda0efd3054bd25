/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Compares the check of each kernel with what the kernel touches. Records of real calls are changed
 * at random; those that the check accepts are played in memory of exactly the bytes that it states.
 * The check must refuse one byte less. The linker (--wrap) puts the functions below in the place of
 * those by which checks state what calls read and write, tinyml_check_..., so that the objects of
 * kernels are those of any other program. */

#include <string.h>

#include "packs.h"
#include "rules.h"
#include "rules_calls.h"

#ifndef RULES_SHORT
#define RULES_SHORT 0u
#endif
#define WORK   20000u
#define ENOUGH 0x10000000u /* bytes of every memory, while extents are learned */
#define RECORD (RULES_PARTS - 1)

void __wrap_tinyml_check_reads(struct tinyml_check *check, uint32_t operand, uint32_t bytes,
			       uint32_t alignment);
void __real_tinyml_check_reads(struct tinyml_check *check, uint32_t operand, uint32_t bytes,
			       uint32_t alignment);
void __wrap_tinyml_check_writes(struct tinyml_check *check, uint32_t operand, uint32_t bytes,
				uint32_t alignment);
void __real_tinyml_check_writes(struct tinyml_check *check, uint32_t operand, uint32_t bytes,
				uint32_t alignment);
void __wrap_tinyml_check_constants(struct tinyml_check *check, uint32_t position, uint32_t bytes,
				   uint32_t alignment);
void __real_tinyml_check_constants(struct tinyml_check *check, uint32_t position, uint32_t bytes,
				   uint32_t alignment);

static struct part parts[RULES_PARTS];
static bool learning;

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

void __wrap_tinyml_check_reads(struct tinyml_check *check, uint32_t operand, uint32_t bytes,
			       uint32_t alignment)
{
	learn(operand, bytes, alignment);
	__real_tinyml_check_reads(check, operand, bytes, alignment);
}

void __wrap_tinyml_check_writes(struct tinyml_check *check, uint32_t operand, uint32_t bytes,
				uint32_t alignment)
{
	learn(operand, bytes, alignment);
	__real_tinyml_check_writes(check, operand, bytes, alignment);
}

void __wrap_tinyml_check_constants(struct tinyml_check *check, uint32_t position, uint32_t bytes,
				   uint32_t alignment)
{
	const uint32_t part = position / RULES_ROOM;

	learn(part, tinyml_check_plus(position - RULES_POSITION(part), bytes), alignment);
	__real_tinyml_check_constants(check, position, bytes, alignment);
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
		const uint32_t before = RULES_POSITION(RULES_TABLE + i),
			       last = RULES_POSITION(RULES_PARTS);

		if (!parts[RULES_TABLE + i].used || parts[RULES_TABLE + i].bytes == 0u) {
			continue;
		}
		memcpy(&bytes[table[i]], &last, 4);
		memcpy(&rules_memory[last], rules_contents[i], RULES_MOST);
		sizes[2] = last + parts[RULES_TABLE + i].bytes;
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
	const uint32_t before = rules_state;

	rules_state = seed;
	for (uint32_t i = 0; i < RECORD; i++) {
		if (parts[i].used && i >= RULES_TABLE) {
			memcpy(parts[i].at, rules_contents[i - RULES_TABLE], parts[i].bytes);
			continue;
		}
		for (uint32_t byte = 0; parts[i].used && byte < parts[i].bytes; byte++) {
			parts[i].at[byte] = (uint8_t)rules_any();
		}
	}
	rules_state = before;
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
	const bool exactly = rules_below(2) != 0u;

	parts[RECORD] = (struct part){.bytes = call->record_bytes, .alignment = 4, .used = true};
	for (uint32_t i = 0; i < RULES_PARTS; i++) {
		if (parts[i].used) {
			parts[i].at = rules_place(i, parts[i].bytes, parts[i].alignment, exactly);
		}
	}
	for (uint32_t i = 0; i < RULES_TABLES && table[i] != RULES_NO_TABLE; i++) {
		if (parts[RULES_TABLE + i].used) {
			const uint32_t position =
				(uint32_t)(parts[RULES_TABLE + i].at - rules_memory);

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
	const uint32_t seed = rules_any() | 1u;
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
	uint32_t work;

	*kernel = 0;
	rules_state = (start * 2654435761u) ^ (number * 2246822519u) ^ 0x9e3779b9u;
	rules_state = rules_state != 0u ? rules_state : 1u;
	(void)rules_any();
	memset(parts, 0, sizeof(parts));
	if (!rules_take_call(&call)) {
		return "a real call is not known";
	}
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
