/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef UPDATE_H_
#define UPDATE_H_

#include <stdint.h>

struct pack {
	const void *data;
	uint32_t bytes;
};

/** Keep one model after the other in the flash, with a loss of power between; returns what was
 * wrong. */
int tell_update(struct pack first, struct pack second);

#endif /* UPDATE_H_ */
