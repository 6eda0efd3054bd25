/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "parts.h"

#include <stdio.h>

#include "forks.h"

static struct {
	uint64_t most, cycles;
} longest[MAX_PARTS];

static void keep_longest(const struct pass *pass)
{
	longest[pass->part].most = larger(longest[pass->part].most, pass->most);
	longest[pass->part].cycles = larger(longest[pass->part].cycles, pass->cycles);
}

/* Whether a run goes on: a call until it returns, also if it ends with a jump into another
 * function; a turn until the next one, or until the loop is left. */
static bool goes_on(const struct pass *pass, const struct op *op)
{
	if (now.depth != pass->depth || !pass->turn) {
		return (int32_t)now.depth >= (int32_t)pass->depth;
	}
	return op != NULL && op->part == pass->part && op->role == 0u;
}

/* The first instruction of the function that says a total. Its caller is the kernel, unless that
 * was merged with NAME_run(), which has other layers as well: then nothing is counted apart. */
static void state_total(const struct op *op)
{
	static uint32_t printed;
	const struct value runs = reg(0);
	const uint32_t kernel = now.depth - 1u;

	if (runs.unknown || (int32_t)runs.bits < 0 || now.depth < 2u ||
	    (now.stated != 0u && now.stated_depth != kernel)) {
		return;
	}
	owe_runs(op->part, runs.bits);
	now.stated |= 1u << op->part;
	now.stated_depth = kernel;
	if (!(printed >> op->part & 1u)) {
		printed |= 1u << op->part;
		printf("part %u\n", op->part);
	}
}

void follow_parts(const struct op *op)
{
	if (now.stated == 0u && (op == NULL || op->part == 0u)) {
		return;
	}
	while (now.passes != 0u && !goes_on(&now.pass[now.passes - 1u], op)) {
		keep_longest(&now.pass[--now.passes]);
	}
	if (now.stated != 0u && (int32_t)now.depth < (int32_t)now.stated_depth) {
		now.stated = 0;
	}
	if (op == NULL || op->role == 0u || now.force != FREE) {
		return; /* with a way, an instruction is executed once more */
	}
	if (op->role == ROLE_STATES) {
		state_total(op);
	} else if (now.stated >> op->part & 1u) {
		if (now.passes == MAX_PASSES) {
			fail("parts nest too deeply");
		}
		now.pass[now.passes++] = (struct pass){
			.part = op->part, .depth = now.depth, .turn = op->role == ROLE_TURN};
	}
}

bool spend_in_part(uint64_t cycles)
{
	struct pass *pass;

	if (now.passes == 0u) {
		return false;
	}
	pass = &now.pass[now.passes - 1u];
	pass->most++;
	pass->cycles += cycles;
	return true;
}

/* A run that only one way is in ends here: what follows counts for the part around it. */
void join_parts(const struct state *other)
{
	uint8_t both = 0;

	while (both < now.passes && both < other->passes &&
	       now.pass[both].part == other->pass[both].part &&
	       now.pass[both].depth == other->pass[both].depth) {
		struct pass *pass = &now.pass[both];
		const struct pass *with = &other->pass[both++];

		pass->most = larger(pass->most, with->most);
		pass->cycles = larger(pass->cycles, with->cycles);
	}
	for (uint8_t i = both; i < other->passes; i++) {
		keep_longest(&other->pass[i]);
	}
	while (now.passes > both) {
		keep_longest(&now.pass[--now.passes]);
	}
	now.stated &= other->stated;
	if (now.stated_depth != other->stated_depth) {
		now.stated = 0;
	}
}

struct cost with_runs(const struct cost *cost)
{
	struct cost whole = *cost;

	for (unsigned i = 0; i < MAX_PARTS; i++) {
		whole.most += cost->runs[i] * longest[i].most;
		whole.cycles += cost->runs[i] * longest[i].cycles;
	}
	return whole;
}
