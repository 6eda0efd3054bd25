/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A model in a slot gets its arena and its state as arguments. The generated source was written for
 * a model with memory of its own: its functions take no arguments, and name their arrays. Here
 * NAME_run and NAME_reset become macros that add the two arguments wherever they are declared,
 * defined or called, and the names of the arrays become addresses derived from the arguments. So
 * nothing is reserved for the two pointers, and the compiler treats them like any other value. */

#ifndef TINYML_SLOT_MEMORY_H_
#define TINYML_SLOT_MEMORY_H_

#include <stdint.h>

/* The text between the parentheses: `void` in declarations, nothing in calls. */
#define TINYML_SLOT_ARGUMENTS_void uint8_t *tinyml_slot_arena, uint8_t *tinyml_slot_state
#define TINYML_SLOT_ARGUMENTS_     tinyml_slot_arena, tinyml_slot_state

/* What a function that does not get the arguments finds instead. Nothing defines them: such a
 * function is not part of a slot, and if it were, linking would fail. */
extern uint8_t *const tinyml_slot_arena;
extern uint8_t *const tinyml_slot_state;

#define TINYML_ARENA(model, size_bytes)  _Static_assert((size_bytes) > 0, "an arena")
#define TINYML_STATE(type, name, length) _Static_assert((length) > 0, "a state")
#define TINYML_TENSOR_DATA(address)      NULL

#endif /* TINYML_SLOT_MEMORY_H_ */
