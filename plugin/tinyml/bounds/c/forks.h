/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Branches by data: both ways, one after the other, up to the place where they meet. */

#ifndef TINYML_BOUNDS_FORKS_H_
#define TINYML_BOUNDS_FORKS_H_

#include "machine.h"
#include "ops.h"

/* Count an instruction for the run and for the current layer. */
void spend(const struct op *op, bool taken);
/* The kernel says that a part runs at most so often: see parts.h. */
void owe_runs(unsigned part, uint32_t runs);
/* The operation is in NAME_run() itself and belongs to this layer. */
void enter_layer(uint16_t number);
/* Which way a branch goes: 1, 0, or -1 after a fork, when the instruction runs again with a way. */
int way_of(const struct op *op, int holds, uint32_t meet);
/* Which entry of a table of targets a jump by data takes: each in turn. */
uint32_t entry_by_data(const struct op *op);
/* End the ways that have come to their meeting. */
void close_ways(void);
/* Count a step of the walk. */
void count_step(void);
void print_costs(uint32_t stack_bytes);

#endif /* TINYML_BOUNDS_FORKS_H_ */
