/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Reset and faults of a bare RISC-V core in machine mode. */

#include <stdint.h>

#include "csr.h"
#include "port.h"
#include "report.h"

#define EXIT_FAULT  3
#define GUARD_BYTES 0x10000u /* below the stack, where the linker script leaves a gap */

int main(void);
_Noreturn void image_reset(void);
_Noreturn void image_start(void);
_Noreturn void image_fault(uint32_t sp, uint32_t ra);

extern uint32_t image_stack_limit[];
extern uint32_t image_bss_start[];
extern uint32_t image_bss_end[];

/* First in memory, where QEMU starts. The thread pointer is for errno, which picolibc keeps per
 * thread. */
__attribute__((naked, section(".vectors"))) _Noreturn void image_reset(void)
{
	__asm volatile("la sp, image_stack_top\n"
		       "la tp, image_tls\n"
		       "j image_start\n");
}

/* The stack may be the cause, so the report uses one of its own. */
__attribute__((naked, noreturn, aligned(4))) static void fault(void)
{
	__asm volatile("mv a0, sp\n"
		       "mv a1, ra\n"
		       "la sp, image_fault_stack_top\n"
		       "j image_fault\n");
}

/* Memory below the stack exists on this machine, so an overflow would go unnoticed. A locked region
 * without any rights binds machine mode too. */
static void guard_stack(void)
{
	const uintptr_t limit = (uintptr_t)image_stack_limit;
	const uint32_t locked_top_of_range =
		0x88u; /* of region 1, which begins where region 0 ends */

	CSR_WRITE("pmpaddr0", (limit - GUARD_BYTES) >> 2);
	CSR_WRITE("pmpaddr1", limit >> 2);
	CSR_WRITE("pmpcfg0", locked_top_of_range << 8);
}

/* Code with vectors or floating-point registers faults until they are switched on. */
static inline void enable_registers(void)
{
#if defined(__riscv_vector) || defined(__riscv_flen)
	uint32_t status;

	CSR_READ("mstatus", status);
#ifdef __riscv_vector
	status |= 1u << 9; /* VS: initial state */
#endif
#ifdef __riscv_flen
	status |= 1u << 13; /* FS: initial state */
#endif
	CSR_WRITE("mstatus", status);
#endif
}

_Noreturn void image_start(void)
{
	enable_registers();
	for (volatile uint32_t *word = image_bss_start; word < image_bss_end; word++) {
		*word = 0;
	}
	CSR_WRITE("mtvec", (uintptr_t)fault);
	guard_stack();
	port_exit(main());
}

_Noreturn void image_fault(uint32_t sp, uint32_t ra)
{
	uint32_t cause;
	uint32_t address;
	uint32_t pc;

	CSR_READ("mcause", cause);
	CSR_READ("mtval", address);
	CSR_READ("mepc", pc);
	port_print("fault\n");
	report_register("mcause", cause);
	report_register("address", address);
	report_register("sp", sp);
	report_register("ra", ra);
	report_register("pc", pc);
	port_exit(EXIT_FAULT);
}
