/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/*
 * proves: weighted/output_s8.h
 * shapes: every accumulator and factor that the compiler allows, every negative shift
 */

#include "weighted/output_s8.h"
#include "proof.h"

int main(void)
{
	const int32_t most = INT32_MAX - 1023; /* as passes/bound_sums.py has it */
	const int32_t acc = between(-most, most), multiplier = nondet_int(), shift = nondet_int();
	const int32_t zero = nondet_int(), low = nondet_int(), high = nondet_int();
	struct tinyml_output to;
	int8_t result;

	__CPROVER_assume(multiplier >= 1 << 30);
	__CPROVER_assume(shift >= -31 && shift < 0);
	__CPROVER_assume(zero >= INT8_MIN && zero <= INT8_MAX);
	__CPROVER_assume(low >= INT8_MIN && low <= high && high <= INT8_MAX);
	to = tinyml_output(nondet_bool(), zero, low, high);
	result = tinyml_output_s8(acc, multiplier, shift, &to);
	__CPROVER_assert(result >= low && result <= high, "results are within the limits");
	return 0;
}
