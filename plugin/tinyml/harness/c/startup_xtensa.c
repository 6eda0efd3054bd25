/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Reset and faults of a bare Xtensa core with the call0 ABI. */

#include <stdint.h>

#include "port.h"
#include "report.h"

#define EXIT_FAULT 3

int main(void);
_Noreturn void image_start(void);
_Noreturn void image_fault(uint32_t sp, uint32_t return_address);

extern uint32_t image_bss_start[];
extern uint32_t image_bss_end[];

/* First in memory, where QEMU starts. The vectors follow: every core has its own offsets, so all
 * lead to the same place. The stack may be the cause of a fault, so the report uses one of its own.
 */
__asm__(".section .vectors, \"ax\"\n"
	".global image_reset\n"
	"image_reset:\n"
	"	j 1f\n"
	".org 0x400\n"
	".rept 64\n"
	"	j 2f\n"
	".balign 16\n"
	".endr\n"
	".align 4\n"
	".literal_position\n"
	"1:	movi a1, image_stack_top\n"
	"	movi a2, image_reset + 0x400\n"
	"	wsr.vecbase a2\n"
	"	movi a2, 0x20\n" /* user vector mode; exceptions are taken */
	"	wsr.ps a2\n"
	"	rsync\n"
	"	movi a0, image_start\n"
	"	jx a0\n"
	"2:	mov a2, a1\n"
	"	mov a3, a0\n"
	"	movi a1, image_fault_stack_top\n"
	"	movi a0, image_fault\n"
	"	jx a0\n"
	".previous\n");

_Noreturn void image_start(void)
{
	for (volatile uint32_t *word = image_bss_start; word < image_bss_end; word++) {
		*word = 0;
	}
	port_exit(main());
}

#define READ(name, value) __asm volatile("rsr." name " %0" : "=r"(value))

_Noreturn void image_fault(uint32_t sp, uint32_t return_address)
{
	uint32_t cause;
	uint32_t address;
	uint32_t pc;

	READ("exccause", cause);
	READ("excvaddr", address);
	READ("epc1", pc);
	port_print("fault\n");
	report_register("exccause", cause);
	report_register("address", address);
	report_register("sp", sp);
	report_register("ra", return_address);
	report_register("pc", pc);
	port_exit(EXIT_FAULT);
}
