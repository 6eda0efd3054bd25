/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** From integers of 64 bits, which can be anything, to indices that lie inside a tensor. */

#ifndef TINYML_INDEX_H_
#define TINYML_INDEX_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A value as it is, or the nearest limit. */
static inline int32_t tinyml_limited(int64_t value, int32_t low, int32_t high)
{
	if (value < low) {
		return low;
	}
	return value > high ? high : (int32_t)value;
}

/** The remainder of a value, from 0 to `size` - 1. */
static inline int32_t tinyml_wrapped(int64_t value, int32_t size)
{
	const int32_t rest = (int32_t)(value % size);

	return rest < 0 ? rest + size : rest;
}

/** An index into `size` elements: negative ones count from the end, and one that is out of range
 * becomes the nearest valid one. */
static inline int32_t tinyml_index(int64_t index, int32_t size)
{
	if (index < 0) {
		index += size;
	}
	if (index < 0) {
		return 0;
	}
	return index >= size ? size - 1 : (int32_t)index;
}

#ifdef __cplusplus
}
#endif

#endif /* TINYML_INDEX_H_ */
