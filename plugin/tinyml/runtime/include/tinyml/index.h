/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Computed indices: negative ones count from the end, and none lies outside the tensor. */

#ifndef TINYML_INDEX_H_
#define TINYML_INDEX_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An index into `size` elements; one that is out of range becomes the nearest valid one. */
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
