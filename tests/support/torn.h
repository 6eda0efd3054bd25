/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What a power failure leaves of a write or an erase, for the simulators of flash. */

#ifndef TINYML_TESTS_TORN_H_
#define TINYML_TESTS_TORN_H_

#include <stdint.h>

/* The byte at `position` of an operation on some bytes that power failure ends: nothing has
 * happened (0), the first half (1), the second half (2), all (3), or the bits that are set in
 * `any`. */
static inline uint8_t torn(int how, uint8_t before, uint8_t after, uint32_t position,
			   uint32_t bytes, uint8_t any)
{
	switch (how) {
	case 0:
		return before;
	case 1:
		return position < bytes / 2u ? after : before;
	case 2:
		return position < bytes / 2u ? before : after;
	case 3:
		return after;
	default:
		return (uint8_t)(before ^ ((before ^ after) & any));
	}
}

#endif /* TINYML_TESTS_TORN_H_ */
