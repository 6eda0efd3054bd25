/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Semihosting, as defined by Arm and adopted by RISC-V: requests that QEMU (or a debugger)
 * answers on behalf of the image. */

#ifndef TINYML_HARNESS_SEMIHOSTING_H_
#define TINYML_HARNESS_SEMIHOSTING_H_

#include <stdint.h>

enum semihosting_operation {
	SEMIHOSTING_OPEN = 0x01,
	SEMIHOSTING_CLOSE = 0x02,
	SEMIHOSTING_WRITE0 = 0x04, /* a string to the console */
	SEMIHOSTING_WRITE = 0x05,
	SEMIHOSTING_READ = 0x06,
	SEMIHOSTING_EXIT_EXTENDED = 0x20, /* exit with a status */
};

#ifdef __XTENSA__
#include "semihosting_xtensa.h"
#else

static inline intptr_t semihosting(enum semihosting_operation operation, const void *argument)
{
#ifdef __riscv
	register intptr_t result __asm("a0") = (intptr_t)operation;
	register const void *parameter __asm("a1") = argument;

	/* These three instructions, uncompressed and in one page, are the request. */
	__asm volatile(".option push\n"
		       ".option norvc\n"
		       ".balign 16\n"
		       "slli x0, x0, 0x1f\n"
		       "ebreak\n"
		       "srai x0, x0, 7\n"
		       ".option pop\n"
		       : "+r"(result)
		       : "r"(parameter)
		       : "memory");
#else
	register intptr_t result __asm("r0") = (intptr_t)operation;
	register const void *parameter __asm("r1") = argument;

	__asm volatile("bkpt 0xab" : "+r"(result) : "r"(parameter) : "memory");
#endif
	return result;
}

#endif /* __XTENSA__ */

#endif /* TINYML_HARNESS_SEMIHOSTING_H_ */
