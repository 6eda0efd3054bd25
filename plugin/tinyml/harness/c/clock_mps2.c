/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* MPS2 boards: CMSDK timer 0 counts down 32 bits at 25 MHz; the 100 Hz counter of the board
 * counts how often it wrapped. */

#include "clock.h"

#ifndef TIMER
#define TIMER   0x40000000u
#define FPGA_IO 0x40028000u
#endif

#define TIMER_CTRL   (*(volatile uint32_t *)(TIMER + 0x00u))
#define TIMER_VALUE  (*(volatile uint32_t *)(TIMER + 0x04u))
#define TIMER_RELOAD (*(volatile uint32_t *)(TIMER + 0x08u))
#define CLOCK_100HZ  (*(volatile uint32_t *)(FPGA_IO + 0x14u))

void clock_start(void)
{
	TIMER_CTRL = 0;
	CLOCK_100HZ = 0;
	TIMER_RELOAD = UINT32_MAX;
	TIMER_VALUE = UINT32_MAX;
	TIMER_CTRL = 1;
}

void clock_read(struct port_stamp *stamp)
{
	stamp->fine = UINT32_MAX - TIMER_VALUE;
	stamp->coarse = CLOCK_100HZ;
}
