/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "forks.h"

#include <stdio.h>
#include <stdlib.h>

#include "costs.h"
#include "parts.h"
#include "program.h"

/* What the ways that end at one place leave behind, all of them joined. */
struct outcome {
	struct state state;
	struct cost cost; /* since the branch */
	struct change *changes;
	size_t count;
	bool reached;
};

/* A branch by data whose ways are being walked. They end where they all meet, or at the start of
 * the loop around the branch. If some do the one and some the other, the next turns follow: `rest`.
 * Branches of one turn that end at the same two places share them, so that each turn is walked
 * once. */
struct fork {
	struct state before;
	struct cost start;
	struct outcome at_meeting, at_start;
	const struct op *op;
	size_t log;
	uint32_t meet, again, depth;
	bool second, rest;
	uint16_t layer;
};

static struct cost total, layers[MAX_LAYERS];
static bool varies[MAX_LAYERS];
static uint16_t layer = NO_LAYER;
static struct fork *forks;
static size_t fork_count, fork_room;
static uint64_t all_forks, steps, steps_by_data;

/* Add a cost to the run, and to the current layer: at once, or when the last open branch ends. */
static void add_cost(const struct cost *spent)
{
	total = cost_sum(&total, spent);
	if (fork_count == 0 && layer != NO_LAYER) {
		layers[layer] = cost_sum(&layers[layer], spent);
	}
}

void spend(const struct op *op, bool taken)
{
	const uint64_t cycles = op->cycles + (taken ? op->taken : 0u) +
				(uint64_t)header.unaligned_cycles * unaligned_accesses();
	const bool in_part = spend_in_part(cycles);
	const uint64_t most = !in_part, counted = in_part ? 0u : cycles;

	total.most += most;
	total.least++;
	total.cycles += counted;
	if (fork_count == 0 && layer != NO_LAYER) {
		layers[layer].most += most;
		layers[layer].least++;
		layers[layer].cycles += counted;
	}
}

void owe_runs(unsigned part, uint32_t runs)
{
	struct cost owed = {0};

	owed.runs[part] = runs;
	add_cost(&owed);
}

void enter_layer(uint16_t number)
{
	if (number != NO_LAYER && fork_count == 0) {
		layer = number;
	}
}

static void open_fork(const struct op *op, uint32_t meet, uint32_t again)
{
	struct fork *fork;

	if (fork_count == header.most_forks) {
		fail("a loop that ends by data, without a known limit");
	}
	if (fork_count == fork_room) {
		fork_room = fork_room ? 2 * fork_room : 64;
		forks = realloc(forks, fork_room * sizeof(*forks));
		if (forks == NULL) {
			fail("out of memory");
		}
	}
	keep_log(true);
	fork = &forks[fork_count++];
	all_forks++;
	*fork = (struct fork){
		.before = now,
		.start = total,
		.op = op,
		.log = log_length(),
		.meet = meet,
		.again = again,
		.depth = now.depth,
		.layer = layer,
	};
}

static bool at_start(const struct fork *fork)
{
	return !fork->rest && fork->again != 0u && now.pc == fork->again &&
	       now.depth == fork->depth;
}

static bool at_meeting(const struct fork *fork)
{
	if (now.depth != fork->depth) {
		return (int32_t)now.depth < (int32_t)fork->depth;
	}
	return now.pc == fork->meet || at_start(fork);
}

static void join_states(const struct state *other)
{
	if (now.pc != other->pc || now.depth != other->depth) {
		fail("two ways of a branch do not meet");
	}
	if (now.r[SP] != other->r[SP]) {
		fail("two ways of a branch leave different stacks");
	}
	for (unsigned i = 0; i < 16; i++) {
		if (now.r[i] != other->r[i]) {
			set_reg(i, (struct value){0, true});
		}
	}
	for (unsigned i = 0; i < 16; i++) {
		if (other->unknown >> i & 1u) {
			set_reg(i, (struct value){0, true});
		}
	}
	for (unsigned i = 0; i < 32; i++) {
		if (now.s[i] != other->s[i] || other->s_unknown >> i & 1u) {
			now.s[i] = 0;
			now.s_unknown |= 1u << i;
		}
	}
	now.flags_unknown =
		(uint8_t)(now.flags_unknown | other->flags_unknown | (now.flags ^ other->flags));
	now.flags = (uint8_t)(now.flags & ~now.flags_unknown);
	join_parts(other);
	if (now.tail != other->tail) {
		fail("two ways of a branch leave different loops");
	}
	if (now.lanes != other->lanes || !other->lanes_known) {
		now.lanes = 0;
		now.lanes_known = 0;
	}
}

/* The current state and costs become those of all ways that are in an outcome and of this one. */
static struct cost join_outcome(const struct fork *fork, struct outcome *with)
{
	struct cost spent = cost_since(&total, &fork->start);

	layer = fork->layer;
	if (!with->reached) {
		return spent;
	}
	join_states(&with->state);
	join_memory(fork->log, with->changes, with->count);
	free(with->changes);
	with->reached = false;
	if (layer != NO_LAYER && (spent.most != with->cost.most || spent.least != spent.most)) {
		varies[layer] = true;
	}
	return cost_of_either(&spent, &with->cost);
}

/* A way has ended: its outcome is kept, and memory is again as before the branch. */
static void keep_outcome(struct fork *fork, struct outcome *with)
{
	with->cost = join_outcome(fork, with);
	with->state = now;
	with->count = undo(fork->log, &with->changes);
	with->reached = true;
}

/* Continue from an outcome. */
static void resume(const struct fork *fork, struct outcome *from)
{
	now = from->state;
	total = cost_sum(&fork->start, &from->cost);
	layer = fork->layer;
	redo(from->changes, from->count);
	free(from->changes);
	from->reached = false;
}

static void end_fork(struct cost spent)
{
	const struct fork *fork = &forks[--fork_count];

	total = fork->start;
	add_cost(&spent);
	if (fork_count == 0) {
		keep_log(false);
	}
}

/* Whether a branch and the one around it are in the same turn, with ways that end at the same two
 * places. */
static bool shares_ends(const struct fork *fork, const struct fork *around)
{
	return !around->rest && around->meet == fork->meet && around->again == fork->again &&
	       around->depth == fork->depth;
}

/* Both outcomes of a branch are ends of the way of the branch around it. */
static void hand_over(struct fork *fork, struct fork *around)
{
	struct change *between; /* from the branch around it to this one */
	const size_t count = undo(around->log, &between);

	redo(between, count);
	resume(fork, &fork->at_meeting);
	keep_outcome(around, &around->at_meeting);
	redo(between, count);
	resume(fork, &fork->at_start);
	keep_outcome(around, &around->at_start);
	free(between);
	fork_count--;
}

/* The way of a branch has ended, and its outcome is kept: walk the other one, or what follows. */
static void next_way(void)
{
	for (;;) {
		struct fork *fork = &forks[fork_count - 1];

		if (!fork->second) {
			now = fork->before;
			total = fork->start;
			layer = fork->layer;
			fork->second = true;
			now.force = PASS;
			return;
		}
		if (!fork->at_meeting.reached || !fork->at_start.reached) {
			struct outcome *only =
				fork->at_meeting.reached ? &fork->at_meeting : &fork->at_start;
			const struct cost spent = only->cost;

			resume(fork, only);
			end_fork(spent);
			return;
		}
		if (fork_count < 2 || !shares_ends(fork, fork - 1)) {
			fork->rest = true;
			resume(fork, &fork->at_start);
			return;
		}
		hand_over(fork, fork - 1);
	}
}

static void close_way(void)
{
	struct fork *fork = &forks[fork_count - 1];

	if (fork->rest) {
		end_fork(join_outcome(fork, &fork->at_meeting));
	} else {
		keep_outcome(fork, at_start(fork) ? &fork->at_start : &fork->at_meeting);
		next_way();
	}
}

int way_of(const struct op *op, int holds, uint32_t meet)
{
	if (now.force != FREE) {
		holds = now.force == TAKE;
		now.force = FREE;
		return holds;
	}
	if (holds < 0) {
		if (op->limit !=
		    0u) { /* a loop of the C library of which the most turns are known */
			unsigned turns = 0;

			for (size_t i = 0; i < fork_count; i++) {
				turns += forks[i].op == op && forks[i].depth == now.depth;
			}
			if (turns >= op->limit) {
				return op->extra; /* the way out */
			}
		}
		open_fork(op, meet, op->again);
		now.force = TAKE;
	}
	return holds;
}

uint32_t entry_by_data(const struct op *op)
{
	uint32_t entry;

	if (op->limit == 0u) {
		fail("a jump by data, without known targets");
	}
	if (now.force != PASS) {
		now.way = 0;
	} else { /* the first way was the entry before */
		now.way++;
	}
	now.force = FREE;
	now.pc = op->address; /* where the next way begins */
	if (now.way + 1u < op->limit) {
		open_fork(op, op->merge < 0 ? 0u : ops[op->merge].address, 0);
	}
	entry = now.way;
	now.way = 0;
	return entry;
}

void close_ways(void)
{
	while (fork_count != 0 && now.force == FREE && at_meeting(&forks[fork_count - 1])) {
		close_way(); /* a second way begins with the branch itself */
	}
}

void count_step(void)
{
	steps++;
	if (fork_count != 0 && ++steps_by_data > header.most_by_data) {
		fail("too many ways by data");
	}
}

void print_costs(uint32_t stack_bytes)
{
	if (fork_count != 0) {
		fail("the walk ended while a branch by data was open");
	}
	total = with_runs(&total);
	printf("total %llu %llu %llu %u %llu %llu\n", (unsigned long long)total.most,
	       (unsigned long long)total.least, (unsigned long long)total.cycles, stack_bytes,
	       (unsigned long long)all_forks, (unsigned long long)steps);
	for (uint32_t i = 0; i < header.layers; i++) {
		const struct cost cost = with_runs(&layers[i]);

		printf("layer %u %llu %llu %llu %d\n", i, (unsigned long long)cost.most,
		       (unsigned long long)cost.least, (unsigned long long)cost.cycles,
		       varies[i] || cost.most != layers[i].most);
	}
}
