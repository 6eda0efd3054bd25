/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* MPS2 boards with TrustZone: the same peripherals as on the others, at their secure addresses. */

#define TIMER   0x50000000u
#define FPGA_IO 0x50302000u

#include "clock_mps2.c"
