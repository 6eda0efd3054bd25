/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What the C library's mathematics would take from a firmware, and a slot must provide itself. */

#include <tinyml/slot.h>

#if !defined(__riscv)
/* The C library's mathematics stores error numbers, which are not used here. Below the stack
 * pointer they do no harm, and a slot needs no variable for them. */
int *__errno(void);
__attribute__((naked)) int *__errno(void)
{
	__asm__ volatile(".syntax unified\n" /* GCC's own choice for Armv6-M is the old one */
			 "mov r0, sp\n"
			 "subs r0, #8\n"
			 "bx lr\n");
}
#endif

/* How newlib's mathematics reports errors: -1, not at all. Constant, it needs
 * no RAM. */
extern const signed char __fdlib_version;
const signed char __fdlib_version = -1;

/* For `tinyml pack`, not for the slot. */
__attribute__((section(".tinyml_slot_facts"), used)) static const uint32_t facts[2] = {
	TINYML_SLOT_INTERFACE,
	TINYML_SLOT_CORE,
};
