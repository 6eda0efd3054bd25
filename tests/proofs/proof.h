/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What all harnesses share: values that can be anything. */

#ifndef TINYML_PROOF_H_
#define TINYML_PROOF_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int nondet_int(void);
unsigned int nondet_unsigned(void);
bool nondet_bool(void);
uint8_t nondet_byte(void);

/* An array of exactly this size whose content can be anything. */
static inline void *anything(size_t bytes)
{
	void *memory = malloc(bytes);

	__CPROVER_assume(memory != NULL);
	return memory;
}

static inline int between(int low, int high)
{
	const int value = nondet_int();

	__CPROVER_assume(value >= low && value <= high);
	return value;
}

#endif /* TINYML_PROOF_H_ */
