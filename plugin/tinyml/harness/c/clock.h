/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The finest clock of a machine. QEMU started with -icount advances it by a fixed time for each
 * instruction, so that a reading is a number of executed instructions. */

#ifndef TINYML_HARNESS_CLOCK_H_
#define TINYML_HARNESS_CLOCK_H_

#include "port.h"

void clock_start(void); /* from zero */
void clock_read(struct port_stamp *stamp);

#endif /* TINYML_HARNESS_CLOCK_H_ */
