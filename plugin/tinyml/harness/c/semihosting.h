/* SPDX-License-Identifier: Apache-2.0 */

/* Arm semihosting: requests that QEMU (or a debugger) answers on behalf of the image. */

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

static inline intptr_t semihosting(enum semihosting_operation operation, const void *argument)
{
	register intptr_t r0 __asm("r0") = (intptr_t)operation;
	register const void *r1 __asm("r1") = argument;

	__asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
	return r0;
}

#endif /* TINYML_HARNESS_SEMIHOSTING_H_ */
