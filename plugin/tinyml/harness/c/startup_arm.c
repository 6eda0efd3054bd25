/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Reset and faults of a bare Cortex-M. */

#include <stdint.h>

#include "port.h"
#include "report.h"

#define SCB_CCR   (*(volatile uint32_t *)0xe000ed14u)
#define SCB_CFSR  (*(volatile uint32_t *)0xe000ed28u)
#define SCB_HFSR  (*(volatile uint32_t *)0xe000ed2cu)
#define SCB_BFAR  (*(volatile uint32_t *)0xe000ed38u)
#define DIV_0_TRP (1u << 4)

#define EXIT_FAULT 3

int main(void);
_Noreturn void image_reset(void);
_Noreturn void image_start(void);
_Noreturn void image_fault(const uint32_t *frame, uint32_t exc_return);

extern uint32_t image_stack_top[];
extern uint32_t image_stack_limit[];
extern uint32_t image_fault_stack_top[];
extern uint32_t image_bss_start[];
extern uint32_t image_bss_end[];

/* In assembly because compiled code may use floating-point or vector registers from its very first
 * instruction, and the coprocessors are off after reset. Cores without them ignore the write. */
__attribute__((naked)) _Noreturn void image_reset(void)
{
	__asm volatile("ldr r0, =0xe000ed88\n" /* CPACR: full access to CP10 and CP11 */
		       "ldr r1, [r0]\n"
		       "ldr r2, =0xf00000\n" /* in a register, as Armv6-M has it */
		       "orr r1, r2\n"
		       "str r1, [r0]\n"
		       "dsb\n"
		       "isb\n"
		       "ldr r0, =image_start\n" /* which may be too far for a branch */
		       "bx r0\n");
}

/* The stack may be the cause, so the report uses one of its own. */
__attribute__((naked, noreturn)) static void fault(void)
{
	__asm volatile("mov r0, sp\n"
		       "mov r1, lr\n"
		       "ldr r2, =image_fault_stack_top\n"
		       "mov sp, r2\n"
		       "ldr r2, =image_fault\n"
		       "bx r2\n");
}

_Noreturn void image_start(void)
{
	for (volatile uint32_t *word = image_bss_start; word < image_bss_end; word++) {
		*word = 0;
	}
	SCB_CCR |= DIV_0_TRP;
	port_exit(main());
}

_Noreturn void image_fault(const uint32_t *frame, uint32_t exc_return)
{
	static const char *const names[8] = {"r0", "r1", "r2", "r3", "r12", "lr", "pc", "xpsr"};

	port_print("fault\n");
	report_register("cfsr", SCB_CFSR);
	report_register("hfsr", SCB_HFSR);
	report_register("address", SCB_BFAR);
	report_register("sp", (uint32_t)(uintptr_t)frame);
	report_register("exc_return", exc_return);
	if (frame >= image_stack_limit && frame + 8 <= image_stack_top) {
		for (int i = 0; i < 8; i++) {
			report_register(names[i], frame[i]);
		}
	}
	port_exit(EXIT_FAULT);
}

typedef void (*vector)(void);

__attribute__((section(".vectors"), used)) static const vector vectors[16] = {
	(vector)(uintptr_t)image_stack_top,
	image_reset,
	[2 ... 15] = fault,
};
