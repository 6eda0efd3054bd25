/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The program that is walked, as program.py writes it. */

#ifndef TINYML_BOUNDS_PROGRAM_H_
#define TINYML_BOUNDS_PROGRAM_H_

#include "ops.h"

#define MAX_LAYERS 4096u
#define NO_LAYER   0xffffu

struct header {
	uint32_t magic, ops, segments, code_base, code_bytes, entry, stack_top, most_forks, layers;
	uint32_t unaligned_cycles;
	uint64_t most_by_data; /* steps of the walk while a branch by data is open */
};

extern struct header header;
extern struct op *ops;

void read_program(const char *name);
/* The operation at an address, or NULL. */
const struct op *op_at(uint32_t address);

#endif /* TINYML_BOUNDS_PROGRAM_H_ */
