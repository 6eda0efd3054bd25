/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* RISC-V counts retired instructions itself: 64 bits, in two registers. */

#include "clock.h"
#include "csr.h"

void clock_start(void)
{
	/* It has been running since reset; only differences matter. */
}

/* Without a loop, so that the number of instructions is always the same: if the upper half changed
 * meanwhile, the lower half shows which of its two values is right. */
void clock_read(struct port_stamp *stamp)
{
	uint32_t earlier;
	uint32_t low;
	uint32_t later;

	CSR_READ("minstreth", earlier);
	CSR_READ("minstret", low);
	CSR_READ("minstreth", later);
	stamp->fine = low;
	stamp->coarse = later - ((later - earlier) & (low >> 31));
}
