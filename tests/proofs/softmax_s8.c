/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * deep: yes
 * proves: softmax/softmax_s8.c
 * shapes: a row of three elements; its functions exp and 1 / (1 + x) give anything in their range
 * unwind: 4
 */

#include "proof.h"

#define tinyml_exp_q5            own_exp_q5
#define tinyml_one_over_one_plus own_one_over_one_plus
#include <tinyml/transcendental.h>
#undef tinyml_exp_q5
#undef tinyml_one_over_one_plus

/* exp of nothing positive, as a number between 0 and 1 in units of 2^-31. */
static int32_t tinyml_exp_q5(int32_t a)
{
	__CPROVER_assert(a <= 0, "differences to the largest");
	return a == 0 ? INT32_MAX : between(0, INT32_MAX);
}

static int32_t tinyml_one_over_one_plus(int32_t a)
{
	__CPROVER_assert(a >= 0, "a fraction");
	return between(1 << 30, INT32_MAX);
}

#include "softmax/softmax_s8.c"

#define DEPTH 3

int main(void)
{
	const struct tinyml_softmax_s8 p = {
		.rows = 1,
		.depth = DEPTH,
		.multiplier = between(1 << 30, INT32_MAX),
		.left_shift = between(0, 22),
		.least_difference = between(-255, 0),
	};
	static int8_t x[DEPTH], y[DEPTH];

	/* What the compiler promises: differences that count stay within 32 bits. */
	__CPROVER_assume(p.least_difference >= -(INT32_MAX >> p.left_shift));
	__CPROVER_havoc_object(x);
	tinyml_softmax_s8(&p, x, y);
	return 0;
}
