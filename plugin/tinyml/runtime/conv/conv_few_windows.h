/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** The windows that conv_few_s8.h multiplies by a filter at a time. */

#ifndef TINYML_CONV_FEW_WINDOWS_H_
#define TINYML_CONV_FEW_WINDOWS_H_

#include <stdint.h>

#define WINDOWS 4

/* Four windows that are `step` bytes apart, and from one row of a window to the next. */
struct conv_few_windows {
	const int8_t *first;
	int32_t step;
	int32_t line;
	int32_t count; /* whose outputs are wanted */
	int8_t *outputs[WINDOWS];
};

#endif /* TINYML_CONV_FEW_WINDOWS_H_ */
