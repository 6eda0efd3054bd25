/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The harness on a bare core: files and console by semihosting, cost by the machine's clock and
 * by painting the stack. */

#include "clock.h"
#include "port.h"
#include "semihosting.h"

#define PAINT             0xc5a3f00du
#define MODE_READ_BINARY  1u
#define MODE_WRITE_BINARY 5u
#define APPLICATION_EXIT  0x20026u

extern uint32_t image_stack_limit[]; /* lowest word of the stack; from the linker script */

static intptr_t samples;
static intptr_t results;

static intptr_t open_file(const char *name, uintptr_t length, uintptr_t mode)
{
	const uintptr_t arguments[3] = {(uintptr_t)name, mode, length};
	intptr_t handle = semihosting(SEMIHOSTING_OPEN, arguments);

	if (handle < 0) {
		port_print("harness: cannot open a file\n");
		port_exit(1);
	}
	return handle;
}

void port_open(void)
{
	samples = open_file("samples.bin", sizeof("samples.bin") - 1u, MODE_READ_BINARY);
	results = open_file("results.bin", sizeof("results.bin") - 1u, MODE_WRITE_BINARY);
}

void port_close(void)
{
	semihosting(SEMIHOSTING_CLOSE, &results);
	semihosting(SEMIHOSTING_CLOSE, &samples);
}

void port_read(void *data, size_t bytes)
{
	const uintptr_t arguments[3] = {(uintptr_t)samples, (uintptr_t)data, bytes};

	if (semihosting(SEMIHOSTING_READ, arguments) != 0) { /* the number of bytes not read */
		port_print("harness: the sample file ended early\n");
		port_exit(1);
	}
}

void port_write(const void *data, size_t bytes)
{
	const uintptr_t arguments[3] = {(uintptr_t)results, (uintptr_t)data, bytes};

	if (semihosting(SEMIHOSTING_WRITE, arguments) != 0) {
		port_print("harness: cannot write the result file\n");
		port_exit(1);
	}
}

void port_print(const char *text)
{
	semihosting(SEMIHOSTING_WRITE0, text);
}

_Noreturn void port_exit(int status)
{
	const uintptr_t arguments[2] = {APPLICATION_EXIT, (uintptr_t)status};

	semihosting(SEMIHOSTING_EXIT_EXTENDED, arguments);
	for (;;) {
	}
}

/* Volatile, so that the compiler does not turn it into a call of memset, which would paint over its
 * own frame. */
static inline void paint(volatile uint32_t *from, const volatile uint32_t *to)
{
	while (from < to) {
		*from++ = PAINT;
	}
}

static inline const volatile uint32_t *first_unpainted(const volatile uint32_t *from,
						       const volatile uint32_t *to)
{
	while (from < to && *from == PAINT) {
		from++;
	}
	return from;
}

void port_measure(int (*function)(void), struct port_cost *cost)
{
	const volatile uint32_t *top;

	clock_start();
#ifdef __riscv
	__asm volatile("mv %0, sp" : "=r"(top));
#else
	__asm volatile("mov %0, sp" : "=r"(top));
#endif
	paint(image_stack_limit, top);
	clock_read(&cost->before);
	cost->status = function();
	clock_read(&cost->after);
	cost->stack_bytes =
		(uint32_t)((uintptr_t)top - (uintptr_t)first_unpainted(image_stack_limit, top));
}
