/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "forks.h"

#include <stdio.h>
#include <stdlib.h>

#include "program.h"

struct cost {
	uint64_t most, least, cycles;
};

struct fork {
	struct state before, first;
	struct cost start, first_cost;
	struct change *first_changes;
	size_t first_count, log;
	const struct op *op;
	uint32_t meet, again, depth;
	bool second;
	uint16_t layer;
};

static struct cost total, layers[MAX_LAYERS];
static bool varies[MAX_LAYERS];
static uint16_t layer = NO_LAYER;
static struct fork *forks;
static size_t fork_count, fork_room;
static uint64_t all_forks, steps, steps_by_data;

void spend(const struct op *op, bool taken)
{
	const uint64_t cycles = op->cycles + (taken ? op->taken : 0u) +
				(uint64_t)header.unaligned_cycles * unaligned_accesses();

	total.most++;
	total.least++;
	total.cycles += cycles;
	if (fork_count == 0 && layer != NO_LAYER) {
		layers[layer].most++;
		layers[layer].least++;
		layers[layer].cycles += cycles;
	}
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
	fork->before = now;
	fork->start = total;
	fork->log = log_length();
	fork->op = op;
	fork->meet = meet;
	fork->again = again;
	fork->depth = now.depth;
	fork->second = false;
	fork->layer = layer;
}

static bool at_meeting(const struct fork *fork)
{
	if (now.depth != fork->depth) {
		return (int32_t)now.depth < (int32_t)fork->depth;
	}
	return now.pc == fork->meet || (fork->again != 0u && now.pc == fork->again);
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
	if (now.tail != other->tail) {
		fail("two ways of a branch leave different loops");
	}
	if (now.lanes != other->lanes || !other->lanes_known) {
		now.lanes = 0;
		now.lanes_known = 0;
	}
}

/* One way came back to the start of the loop and the other left it: the branch runs again, and from
 * now on its ways meet behind the loop. */
static void close_in_vain(void)
{
	struct fork *fork = &forks[fork_count - 1];
	struct change *changes;

	(void)undo(fork->log, &changes);
	free(changes);
	free(fork->first_changes);
	ops[fork->op - ops].again = 0;
	now = fork->before;
	total = fork->start;
	layer = fork->layer;
	fork_count--;
	if (fork_count == 0) {
		keep_log(false);
	}
}

static void close_way(void)
{
	struct fork *fork = &forks[fork_count - 1];
	struct cost spent = {total.most - fork->start.most, total.least - fork->start.least,
			     total.cycles - fork->start.cycles};

	if (!fork->second) {
		fork->first = now;
		fork->first_cost = spent;
		fork->first_count = undo(fork->log, &fork->first_changes);
		now = fork->before;
		total = fork->start;
		layer = fork->layer;
		fork->second = true;
		now.force = PASS;
		return;
	}
	if (fork->again != 0u && (now.pc != fork->first.pc || now.depth != fork->first.depth)) {
		close_in_vain();
		return;
	}
	join_states(&fork->first);
	join_memory(fork->log, fork->first_changes, fork->first_count);
	free(fork->first_changes);
	layer = fork->layer;
	if (layer != NO_LAYER &&
	    (spent.most != fork->first_cost.most || spent.least != spent.most)) {
		varies[layer] = true;
	}
	spent.most = spent.most > fork->first_cost.most ? spent.most : fork->first_cost.most;
	spent.least = spent.least < fork->first_cost.least ? spent.least : fork->first_cost.least;
	spent.cycles =
		spent.cycles > fork->first_cost.cycles ? spent.cycles : fork->first_cost.cycles;
	total.most = fork->start.most + spent.most;
	total.least = fork->start.least + spent.least;
	total.cycles = fork->start.cycles + spent.cycles;
	fork_count--;
	if (fork_count == 0) {
		keep_log(false);
		if (layer != NO_LAYER) {
			layers[layer].most += spent.most;
			layers[layer].least += spent.least;
			layers[layer].cycles += spent.cycles;
		}
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
	printf("total %llu %llu %llu %u %llu %llu\n", (unsigned long long)total.most,
	       (unsigned long long)total.least, (unsigned long long)total.cycles, stack_bytes,
	       (unsigned long long)all_forks, (unsigned long long)steps);
	for (uint32_t i = 0; i < header.layers; i++) {
		printf("layer %u %llu %llu %llu %d\n", i, (unsigned long long)layers[i].most,
		       (unsigned long long)layers[i].least, (unsigned long long)layers[i].cycles,
		       varies[i]);
	}
}
