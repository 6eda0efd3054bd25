/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parts of kernels that run a limited number of times in one call of the kernel, although the loops
 * around them would allow more: functions, and turns of a loop.
 *
 * The kernel says the number (runtime/boxes/totals.h). Until it returns, what its parts take is not
 * counted where they run. The longest run of each part is kept, and is counted as often as the
 * kernel says: no run of the kernel takes more. A part may run inside another one.
 */

#ifndef TINYML_BOUNDS_PARTS_H_
#define TINYML_BOUNDS_PARTS_H_

#include "costs.h"
#include "ops.h"

/* The next operation: parts begin and end here, and totals are said. NULL: no code. */
void follow_parts(const struct op *op);
/* Count an instruction for the part that runs. Returns false if none does. */
bool spend_in_part(uint64_t cycles);
/* Two ways meet: the longer run of each part counts. */
void join_parts(const struct state *other);
/* A cost with the runs of parts, each as long as the longest. */
struct cost with_runs(const struct cost *cost);

#endif /* TINYML_BOUNDS_PARTS_H_ */
