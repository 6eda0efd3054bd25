/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* RISC-V counts retired instructions itself: 64 bits, in two registers. */

#include "clock.h"
#include "csr.h"

void clock_start(void)
{
	/* It runs since reset; only differences are looked at. */
}

/* The same number of instructions whatever is read, so without a loop: if the upper half changed
 * meanwhile, the lower half tells to which of the two it belongs. */
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
