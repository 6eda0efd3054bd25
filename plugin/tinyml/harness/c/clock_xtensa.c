/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Xtensa's cycle counter, 32 bits. */

#include "clock.h"

void clock_start(void)
{
	__asm volatile("wsr.ccount %0" : : "r"(0));
}

void clock_read(struct port_stamp *stamp)
{
	uint32_t ticks;

	__asm volatile("rsr.ccount %0" : "=r"(ticks));
	stamp->fine = ticks;
	stamp->coarse = 0;
}
