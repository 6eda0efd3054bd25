/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TINYML_BOUNDS_ARITHMETIC_H_
#define TINYML_BOUNDS_ARITHMETIC_H_

#include "machine.h"
#include "ops.h"

bool only_computes(const struct op *op);
void compute(const struct op *op);
/* Whether the flags are known after an instruction that sets them. */
bool tells_flags(const struct op *op);
/* An instruction whose condition is not known: its results become unknown where they change
 * anything. */
void compute_perhaps(const struct op *op);

#endif /* TINYML_BOUNDS_ARITHMETIC_H_ */
