/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The port header of a model that is profiled: every layer is between two readings of the clock. */

#ifndef TINYML_HARNESS_PROFILE_H_
#define TINYML_HARNESS_PROFILE_H_

#include <stdint.h>

#define TINYML_LAYER(index, call)                                                                  \
	do {                                                                                       \
		profile_begin(index);                                                              \
		call;                                                                              \
		profile_end();                                                                     \
	} while (0)

void profile_reset(void); /* before a run: forget the last one, measure what measuring costs */
/* Always called, so that what measuring costs is the same everywhere, and so that the program which
 * counts blocks finds the layers by these addresses. */
__attribute__((noinline)) void profile_begin(uint32_t layer);
__attribute__((noinline)) void profile_end(void);
void profile_print(void); /* the readings of the last run, in hexadecimal */

#endif /* TINYML_HARNESS_PROFILE_H_ */
