/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Words in hexadecimal on the console: the only numbers an image prints. */

#ifndef TINYML_HARNESS_REPORT_H_
#define TINYML_HARNESS_REPORT_H_

#include "port.h"

static inline void report_word(uint32_t value)
{
	char text[] = "00000000";

	for (uint32_t i = 0; i < 8u; i++) {
		text[7u - i] = "0123456789abcdef"[(value >> (4u * i)) & 15u];
	}
	port_print(text);
}

static inline void report_register(const char *name, uint32_t value)
{
	port_print(name);
	port_print(" ");
	report_word(value);
	port_print("\n");
}

#endif /* TINYML_HARNESS_REPORT_H_ */
