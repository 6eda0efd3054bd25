/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A model in a slot finds its arena and its state by two registers, which the functions that the
 * firmware calls set (entries.c). Both are registers that functions preserve, so kernels and
 * libraries, which know nothing of this, may use them in between. */

#ifndef TINYML_SLOT_REGISTERS_H_
#define TINYML_SLOT_REGISTERS_H_

#include <stdint.h>

#if defined(__riscv)
register uint8_t *tinyml_slot_arena __asm__("s10");
register uint8_t *tinyml_slot_state __asm__("s11");
#else
register uint8_t *tinyml_slot_arena __asm__("r9");
register uint8_t *tinyml_slot_state __asm__("r10");
#endif

#define TINYML_ARENA(model, size_bytes)  _Static_assert((size_bytes) > 0, "an arena")
#define TINYML_STATE(type, name, length) _Static_assert((length) > 0, "a state")
#define TINYML_TENSOR_DATA(address)      NULL

#endif /* TINYML_SLOT_REGISTERS_H_ */
