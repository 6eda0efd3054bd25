/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What ways take: instructions and cycles, and the runs of parts, which are counted apart. */

#ifndef TINYML_BOUNDS_COSTS_H_
#define TINYML_BOUNDS_COSTS_H_

#include "machine.h"

struct cost {
	uint64_t most, least, cycles;
	uint64_t runs[MAX_PARTS]; /* the most of each part */
};

static inline uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline struct cost cost_sum(const struct cost *a, const struct cost *b)
{
	struct cost sum = {a->most + b->most, a->least + b->least, a->cycles + b->cycles, {0}};

	for (unsigned i = 0; i < MAX_PARTS; i++) {
		sum.runs[i] = a->runs[i] + b->runs[i];
	}
	return sum;
}

static inline struct cost cost_since(const struct cost *end, const struct cost *start)
{
	struct cost since = {end->most - start->most,
			     end->least - start->least,
			     end->cycles - start->cycles,
			     {0}};

	for (unsigned i = 0; i < MAX_PARTS; i++) {
		since.runs[i] = end->runs[i] - start->runs[i];
	}
	return since;
}

/* Of two ways, of which a run takes one. */
static inline struct cost cost_of_either(const struct cost *a, const struct cost *b)
{
	struct cost either = {larger(a->most, b->most),
			      a->least < b->least ? a->least : b->least,
			      larger(a->cycles, b->cycles),
			      {0}};

	for (unsigned i = 0; i < MAX_PARTS; i++) {
		either.runs[i] = larger(a->runs[i], b->runs[i]);
	}
	return either;
}

#endif /* TINYML_BOUNDS_COSTS_H_ */
