/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Walks the machine code of a model for all inputs at once.
 *
 * Constants, addresses and counters are known; what derives from tensors is unknown. A branch by
 * known values goes one way. A branch by unknown values goes both ways, up to the place where they
 * meet: there the larger cost counts, and what differs becomes unknown. So no run takes more
 * instructions or more stack than the walk, and no run writes a byte that the walk does not write.
 *
 * The program comes from a file that program.py writes; the findings are printed as lines of words.
 */

#include <stdio.h>
#include <stdlib.h>

#include "accesses.h"
#include "arithmetic.h"
#include "forks.h"
#include "machine.h"
#include "parts.h"
#include "program.h"

static uint32_t current; /* the instruction */

_Noreturn void fail(const char *why)
{
	printf("fail %u %s\n", current, why);
	exit(0);
}

/* Loops of Armv8.1-M. ``width``: lanes of a turn, in loops with a tail. */
static bool loop(const struct op *op)
{
	if (op->kind == K_LOOP_START) {
		const uint32_t turns = known_reg(op->rn, "a loop's turns depend on data");

		set_reg(LR, (struct value){turns, false});
		now.tail = op->width;
		if (op->target != 0u && turns == 0u) {
			now.tail = 0;
			now.pc = op->target;
			return true;
		}
		return false;
	} else {
		const uint32_t left = known_reg(LR, "a loop's turns depend on data");
		const uint32_t step = now.tail ? now.tail : 1u;

		if (left <= step) {
			now.tail = 0;
			return false;
		}
		now.r[LR] = left - step;
		now.pc = op->target;
		return true;
	}
}

static void tail_lanes(const struct op *op)
{
	const struct value left = reg(op->rn);

	now.lanes_known = !left.unknown;
	now.lanes = 0;
	if (!left.unknown) {
		const uint32_t bytes = left.bits > 16u ? 16u : left.bits * op->amount;

		now.lanes = (uint16_t)(bytes >= 16u ? 0xffffu : (1u << bytes) - 1u);
	}
}

static void by_table(const struct op *op)
{
	const struct value index = reg(op->rm);
	const uint32_t table =
		op->rn == PC ? op->address + 4u : known_reg(op->rn, "a table's address");
	const uint32_t entry = index.unknown ? entry_by_data(op) : index.bits;

	now.pc = op->address + 4u + 2u * load(table + entry * op->width, op->width).bits;
}

/* mov pc: a return, or a jump to an address that was read from a table. */
static void jump_to(const struct op *op)
{
	const struct value to = reg(op->rm);

	if (op->flags & F_ADDS) { /* add pc, rm */
		now.pc = (op->address + 4u + known_reg(op->rm, "a jump by data")) & ~1u;
	} else if (to.unknown && op->limit != 0u) {
		now.pc = load(op->target + 4u * entry_by_data(op), 4).bits;
	} else {
		jump(to);
	}
}

/* Whether the instruction went somewhere else than to the next one. */
static bool execute(const struct op *op)
{
	now.pc = op->address + op->size;
	if (only_computes(op)) {
		compute(op);
		if (op->rd == SP && op->kind < K_SHIFT) {
			move_stack();
		}
		return false;
	}
	switch (op->kind) {
	case K_NOP:
		break;
	case K_BRANCH:
		now.pc = op->target;
		if (op->flags & F_BACK) { /* a far jump by bl */
			set_reg(LR, (struct value){(op->address + op->size) | 1u, false});
		}
		return true;
	case K_CALL:
		call(op->target, op->address + op->size);
		return true;
	case K_CALL_TO:
		call(known_reg(op->rm, "a call whose target depends on data"),
		     op->address + op->size);
		return true;
	case K_BRANCH_TO:
		jump_to(op);
		return true;
	case K_TABLE:
		by_table(op);
		return true;
	case K_LOOP_START:
	case K_LOOP_END:
		return loop(op);
	case K_FLOAT_FLAGS:
		now.flags = 0;
		now.flags_unknown = FLAGS;
		break;
	case K_VECTOR_TAIL:
		tail_lanes(op);
		break;
	case K_PREDICATE:
		now.lanes = 0;
		now.lanes_known = 0;
		break;
	default:
		access_memory(op);
	}
	return now.pc != op->address + op->size;
}

static int zero(const struct op *op)
{
	const struct value value = reg(op->rn);

	return value.unknown ? -1 : (value.bits == 0u) != ((op->flags & F_OTHERWISE) != 0);
}

/* Whether a branch follows a conditional instruction, and both of its ways tell where it goes. */
static bool decides_branch(const struct op *op)
{
	return op->again != 0u && (!(op->flags & F_SETS) || tells_flags(op));
}

static void step(const struct op *op)
{
	const uint32_t next = op->address + op->size;
	const bool branches = op->kind == K_BRANCH || op->kind == K_BRANCH_ZERO;
	const uint32_t meet = op->merge < 0 ? 0u : ops[op->merge].address;
	const bool forced = now.force != FREE;
	int holds = op->kind == K_BRANCH_ZERO ? zero(op) : op->cond >= 14 ? 1 : condition(op->cond);

	if (now.depth == 0u) {
		enter_layer(op->layer);
	}
	if (op->kind == K_TABLE) {
		spend(op, execute(op));
		return;
	}
	if (op->cond < 14 || op->kind == K_BRANCH_ZERO) {
		if (holds < 0 && now.force == FREE && only_computes(op) && op->rd != SP &&
		    !decides_branch(op)) {
			compute_perhaps(op);
			now.pc = next;
			spend(op, false);
			return;
		}
		holds = way_of(op, holds, meet);
		if (holds < 0) {
			return; /* forked: the instruction runs again */
		}
		if (forced && op->kind != K_BRANCH_ZERO) {
			assume(op->cond, holds != 0);
		} else if (forced && (holds != 0) != ((op->flags & F_OTHERWISE) != 0)) {
			set_reg(op->rn, (struct value){0, false}); /* on this way */
		}
	}
	if (!holds) {
		now.pc = next;
		spend(op, false);
	} else if (op->kind == K_BRANCH_ZERO) {
		now.pc = op->target;
		spend(op, true);
	} else {
		spend(op, execute(op) && (branches || op->taken));
	}
}

static void walk(void)
{
	for (;;) {
		const struct op *op;

		follow_parts(op_at(now.pc));
		close_ways(); /* first: the end of one way is not the end of the walk */
		if ((int32_t)now.depth < 0) {
			break;
		}
		current = now.pc;
		op = op_at(now.pc);
		if (op == NULL) {
			fail("code that could not be decoded");
		}
		count_step();
		step(op);
	}
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		return 2;
	}
	read_program(argv[1]);
	start_at(header.entry, header.stack_top);
	walk();
	print_costs(header.stack_top - lowest);
	print_written();
	return 0;
}
