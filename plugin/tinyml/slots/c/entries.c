/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What the firmware calls in a slot. Each sets the registers of registers.h, calls the function of
 * the model, and gives the registers back. */

#include <tinyml/slot.h>

#if defined(__riscv)
#define ENTRY(name, function)                                                                      \
	__attribute__((naked, used, section(".text." #name))) int name(void *arena, void *state)   \
	{                                                                                          \
		__asm__ volatile("addi sp, sp, -16\n"                                              \
				 "sw ra, 12(sp)\n"                                                 \
				 "sw s10, 8(sp)\n"                                                 \
				 "sw s11, 4(sp)\n"                                                 \
				 "mv s10, a0\n"                                                    \
				 "mv s11, a1\n"                                                    \
				 "call " #function "\n"                                            \
				 "lw ra, 12(sp)\n"                                                 \
				 "lw s10, 8(sp)\n"                                                 \
				 "lw s11, 4(sp)\n"                                                 \
				 "addi sp, sp, 16\n"                                               \
				 "ret\n");                                                         \
	}
#else
#define ENTRY(name, function)                                                                      \
	__attribute__((naked, used, section(".text." #name))) int name(void *arena, void *state)   \
	{                                                                                          \
		__asm__ volatile("push {r3, r4, r5, lr}\n"                                         \
				 "mov r4, r9\n"                                                    \
				 "mov r5, r10\n"                                                   \
				 "mov r9, r0\n"                                                    \
				 "mov r10, r1\n"                                                   \
				 "bl " #function "\n"                                              \
				 "mov r9, r4\n"                                                    \
				 "mov r10, r5\n"                                                   \
				 "pop {r3, r4, r5, pc}\n");                                        \
	}

/* The C library's mathematics stores error numbers, which nobody reads here. Below the stack
 * pointer they hurt nobody, and a slot needs no variable for them. */
int *__errno(void);
__attribute__((naked)) int *__errno(void)
{
	__asm__ volatile(".syntax unified\n" /* GCC's own choice for Armv6-M is the old one */
			 "mov r0, sp\n"
			 "subs r0, #8\n"
			 "bx lr\n");
}
#endif

/* newlib asks this variable how its mathematics reports errors: -1, not at all. Constant, it needs
 * no RAM. */
extern const signed char __fdlib_version;
const signed char __fdlib_version = -1;

int slot_model_run(void);
int slot_model_reset(void);
int slot_model_test(void);

ENTRY(slot_entry_run, slot_model_run)
ENTRY(slot_entry_reset, slot_model_reset)
ENTRY(slot_entry_test, slot_model_test)

/* For `tinyml pack`, not for the slot. */
__attribute__((section(".tinyml_slot_facts"), used)) static const uint32_t facts[2] = {
	TINYML_SLOT_INTERFACE,
	TINYML_SLOT_CORE,
};
