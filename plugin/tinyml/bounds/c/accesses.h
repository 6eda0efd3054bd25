/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Loads, stores and moves between register files; jumps, because loads can jump. */

#ifndef TINYML_BOUNDS_ACCESSES_H_
#define TINYML_BOUNDS_ACCESSES_H_

#include "machine.h"
#include "ops.h"

extern uint32_t lowest; /* the lowest stack pointer so far */

uint32_t known_reg(unsigned number, const char *why);
void move_stack(void); /* after the stack pointer changed */
void start_at(uint32_t entry, uint32_t stack_top);
void call(uint32_t target, uint32_t from);
void jump(struct value to);

/* A load, a store, or a move to or from float registers. */
void access_memory(const struct op *op);

#endif /* TINYML_BOUNDS_ACCESSES_H_ */
