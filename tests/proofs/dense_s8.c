/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * proves: dense/dense_s8.c
 * shapes: two rows of three inputs, one output
 * variants: INPUTS=3 OUTPUTS=1
 * unwind: 7
 */

#include <tinyml/dense.h>

#include "proof.h"

#define ROWS  2
#define WORDS ((INPUTS + 3) / 4)
#define FOURS (OUTPUTS / 4)
#define ONES  (OUTPUTS % 4)

static int32_t filters[FOURS * (4 * WORDS + 9) + ONES * (WORDS + 3)];
static int8_t x[ROWS * INPUTS], y[ROWS * OUTPUTS];

/* What the compiler promises: sums fit into 32 bits, factors are normal, shifts are negative. */
static void promise(int32_t bias, int32_t factor, int8_t exponent)
{
	__CPROVER_assume(bias >= -(1 << 30) && bias <= 1 << 30);
	__CPROVER_assume(((uint32_t)factor >> 1) >= 1u << 30);
	__CPROVER_assume(exponent >= 0 && exponent <= 30);
}

int main(void)
{
	const struct tinyml_dense_stream_s8 p = {
		.rows = ROWS,
		.inputs = INPUTS,
		.outputs = OUTPUTS,
		.filters = filters,
		.weight_zero = (int16_t)between(INT8_MIN, INT8_MAX),
		.out_zero = (int16_t)between(INT8_MIN, INT8_MAX),
		.out_min = INT8_MIN,
		.out_max = INT8_MAX,
		.round_once = nondet_bool(),
	};
	const int32_t *at = filters;

	__CPROVER_havoc_object(filters);
	__CPROVER_havoc_object(x);
	for (int left = FOURS; left > 0; left--, at += 4 * WORDS + 9) {
		for (int i = 0; i < 4; i++) {
			promise(at[i], at[4 + 4 * WORDS + i],
				((const int8_t *)&at[8 + 4 * WORDS])[i]);
		}
	}
	for (int left = ONES; left > 0; left--, at += WORDS + 3) {
		promise(at[0], at[1 + WORDS], *(const int8_t *)&at[2 + WORDS]);
	}
	tinyml_dense_s8(&p, x, y);
	return 0;
}
