/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* SSE-300 (MPS3 AN547): the 64-bit system counter at 32 MHz, through its secure control frame. */

#include "clock.h"

#define COUNTER_CONTROL (*(volatile uint32_t *)0x58100000u)
#define COUNTER_LOW     (*(volatile uint32_t *)0x58100008u)
#define COUNTER_HIGH    (*(volatile uint32_t *)0x5810000cu)

void clock_start(void)
{
	COUNTER_CONTROL = 0; /* the value can only be set while the counter is stopped */
	COUNTER_LOW = 0;
	COUNTER_HIGH = 0;
	COUNTER_CONTROL = 1;
}

void clock_read(struct port_stamp *stamp)
{
	stamp->fine = COUNTER_LOW;
	stamp->coarse = COUNTER_HIGH;
}
