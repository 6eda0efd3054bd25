/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* nRF51 (micro:bit): timer 0 with 32 bits at 8 MHz. The fastest rate, 16 MHz, has ticks of half
 * nanoseconds, of which QEMU loses some at every reading. */

#include "clock.h"

#define TASKS_START   (*(volatile uint32_t *)0x40008000u)
#define TASKS_STOP    (*(volatile uint32_t *)0x40008004u)
#define TASKS_CLEAR   (*(volatile uint32_t *)0x4000800cu)
#define TASKS_CAPTURE (*(volatile uint32_t *)0x40008040u)
#define BITMODE       (*(volatile uint32_t *)0x40008508u)
#define PRESCALER     (*(volatile uint32_t *)0x40008510u)
#define CAPTURED      (*(volatile uint32_t *)0x40008540u)

#define BITS_32 3u
#define HALVED  1u /* 16 MHz / 2^1 */

void clock_start(void)
{
	TASKS_STOP = 1;
	BITMODE = BITS_32;
	PRESCALER = HALVED;
	TASKS_CLEAR = 1;
	TASKS_START = 1;
}

void clock_read(struct port_stamp *stamp)
{
	TASKS_CAPTURE = 1;
	stamp->fine = CAPTURED;
	stamp->coarse = 0;
}
