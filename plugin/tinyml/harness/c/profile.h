/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Port header for profiling: reads the clock before and after every layer. */

#ifndef TINYML_HARNESS_PROFILE_H_
#define TINYML_HARNESS_PROFILE_H_

#include <stdint.h>

#define TINYML_WRAP_LAYER(index, call)                                                             \
	do {                                                                                       \
		profile_begin(index);                                                              \
		call;                                                                              \
		profile_end();                                                                     \
	} while (0)

void profile_reset(void); /* before a run: discard readings, measure the cost of a reading */
/* Never inlined, so that a reading costs the same everywhere and the program that counts blocks
 * finds the layers by these addresses. */
__attribute__((noinline)) void profile_begin(uint32_t layer);
__attribute__((noinline)) void profile_end(void);
void profile_print(void); /* the readings of the last run, in hexadecimal */

#endif /* TINYML_HARNESS_PROFILE_H_ */
