/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* MPS2 boards: CMSDK timer 0 counts down 32 bits at 25 MHz; the 100 Hz counter of the board
 * counts how often it wrapped. */

#include "clock.h"

#define TIMER_CTRL   (*(volatile uint32_t *)0x40000000u)
#define TIMER_VALUE  (*(volatile uint32_t *)0x40000004u)
#define TIMER_RELOAD (*(volatile uint32_t *)0x40000008u)
#define CLOCK_100HZ  (*(volatile uint32_t *)0x40028014u)

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
