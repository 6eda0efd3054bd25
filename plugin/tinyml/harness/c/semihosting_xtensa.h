/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The requests of semihosting.h in terms of Xtensa's own: an instruction, with POSIX-like calls. */

#ifndef TINYML_HARNESS_SEMIHOSTING_XTENSA_H_
#define TINYML_HARNESS_SEMIHOSTING_XTENSA_H_

#include <stdint.h>
#include <string.h>

enum {
	SIMCALL_EXIT = 1,
	SIMCALL_READ = 3,
	SIMCALL_WRITE = 4,
	SIMCALL_OPEN = 5,
	SIMCALL_CLOSE = 6,
	CONSOLE = 1,
	WRITE_CREATE_TRUNCATE = 01 | 0100 | 01000, /* of Linux, as QEMU passes them on */
	READABLE = 0644,
};

static inline intptr_t simcall(uintptr_t number, uintptr_t first, uintptr_t second, uintptr_t third)
{
	register uintptr_t a2 __asm("a2") = number;
	register uintptr_t a3 __asm("a3") = first;
	register uintptr_t a4 __asm("a4") = second;
	register uintptr_t a5 __asm("a5") = third;

	__asm volatile("simcall" : "+r"(a2), "+r"(a3) : "r"(a4), "r"(a5) : "memory");
	return (intptr_t)a2;
}

static inline intptr_t semihosting(enum semihosting_operation operation, const void *argument)
{
	const uintptr_t *words = argument;
	uintptr_t left;

	switch (operation) {
	case SEMIHOSTING_OPEN: /* the mode 1 reads, others write */
		return simcall(SIMCALL_OPEN, words[0], words[1] == 1u ? 0u : WRITE_CREATE_TRUNCATE,
			       READABLE);
	case SEMIHOSTING_CLOSE:
		return simcall(SIMCALL_CLOSE, words[0], 0, 0);
	case SEMIHOSTING_WRITE0:
		return simcall(SIMCALL_WRITE, CONSOLE, (uintptr_t)argument, strlen(argument));
	case SEMIHOSTING_EXIT_EXTENDED:
		return simcall(SIMCALL_EXIT, words[1], 0, 0);
	default:
		break;
	}
	left = words[2];
	while (left != 0u) { /* QEMU may transfer less at once */
		const uintptr_t at = words[1] + (words[2] - left);
		const uintptr_t call = operation == SEMIHOSTING_READ ? SIMCALL_READ : SIMCALL_WRITE;
		const intptr_t moved = simcall(call, words[0], at, left);

		if (moved <= 0) {
			break;
		}
		left -= (uintptr_t)moved;
	}
	return (intptr_t)left;
}

#endif /* TINYML_HARNESS_SEMIHOSTING_XTENSA_H_ */
