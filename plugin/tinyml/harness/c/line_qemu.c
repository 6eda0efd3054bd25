/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Semihosting: requests come from a pipe that is a file, since reading that waits as long as it
 * must, and answers go to the console. The clock's ticks are turned into instructions by a loop of
 * a known number of them: all that QEMU counts is instructions, at 2^6 ns each. */

#include "clock.h"
#include "line.h"
#include "port.h"
#include "semihosting.h"

#define MODE_READ_BINARY  1u
#define MODE_WRITE        4u
#define LOOP_INSTRUCTIONS 99999u
#define INSTRUCTIONS_HZ   15625000u

static intptr_t from;
static intptr_t to;
static uint64_t ticks;
static uint32_t last;
static uint32_t loop_ticks;

static intptr_t open_file(const char *name, uintptr_t length, uintptr_t mode)
{
	const uintptr_t arguments[3] = {(uintptr_t)name, mode, length};
	const intptr_t handle = semihosting(SEMIHOSTING_OPEN, arguments);

	if (handle < 0) {
		port_print("harness: no line\n");
		port_exit(1);
	}
	return handle;
}

static uint64_t read_ticks(void)
{
	struct port_stamp stamp;

	clock_read(&stamp);
	ticks += (uint32_t)(stamp.fine - last); /* the clock may have started again at zero */
	last = stamp.fine;
	return ticks;
}

static void loop(void)
{
	unsigned long left = LOOP_INSTRUCTIONS / 3u;

#ifdef __riscv
	__asm volatile("1: addi %0, %0, -1\n"
		       "nop\n"
		       "bnez %0, 1b\n"
		       : "+r"(left));
#else
	__asm volatile("1: sub %0, #1\n"
		       "cmp %0, #0\n"
		       "bne 1b\n"
		       : "+l"(left)
		       :
		       : "cc");
#endif
}

static uint32_t cycles(void)
{
	return (uint32_t)(read_ticks() * LOOP_INSTRUCTIONS / loop_ticks);
}

static void describe_clock(struct tinyml_host_clock *clock)
{
	const uint32_t before = cycles();

	clock->hertz = INSTRUCTIONS_HZ;
	clock->empty = cycles() - before;
	clock->loop = LOOP_INSTRUCTIONS + clock->empty;
}

uint32_t (*const line_cycles)(void) = cycles;
void (*const line_describe_clock)(struct tinyml_host_clock *clock) = describe_clock;

void line_open(void)
{
	uint64_t before;

	from = open_file("requests", sizeof("requests") - 1u, MODE_READ_BINARY);
	to = open_file(":tt", sizeof(":tt") - 1u, MODE_WRITE);
	clock_start();
	before = read_ticks();
	loop();
	loop_ticks = (uint32_t)(read_ticks() - before);
}

bool line_receive(uint8_t *byte)
{
	static uint8_t waiting[64];
	static size_t used, count;

	if (used == count) {
		const uintptr_t arguments[3] = {(uintptr_t)from, (uintptr_t)waiting,
						sizeof(waiting)};
		const intptr_t missing = semihosting(SEMIHOSTING_READ, arguments);

		used = 0;
		count = missing < 0 ? 0u : sizeof(waiting) - (size_t)missing;
	}
	if (count == 0u) {
		return false;
	}
	*byte = waiting[used++];
	return true;
}

void line_send(const uint8_t *data, size_t bytes)
{
	const uintptr_t arguments[3] = {(uintptr_t)to, (uintptr_t)data, bytes};

	(void)semihosting(SEMIHOSTING_WRITE, arguments);
}
