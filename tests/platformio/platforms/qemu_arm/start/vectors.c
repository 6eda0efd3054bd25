/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What the processor reads at reset; newlib's crt0 does the rest. */

#include <stdint.h>

extern uint32_t stack_top;
void _start(void);

/* A fault ends the program: semihosting SYS_EXIT with "run-time error". */
static void fault(void)
{
	register uint32_t call __asm__("r0") = 0x18;
	register uint32_t reason __asm__("r1") = 0x20023;

	for (;;) {
		__asm__ volatile("bkpt 0xab" : : "r"(call), "r"(reason) : "memory");
	}
}

__attribute__((used, section(".vectors"))) static const void *const vectors[] = {
	&stack_top,    (void *)_start, (void *)fault, (void *)fault,
	(void *)fault, (void *)fault,  (void *)fault,
};
