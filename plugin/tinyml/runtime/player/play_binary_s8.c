/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Functions of two int8 tensors. */

#define BINARY_TYPE int8_t

#include "binary_fixed.h"

BINARY_COMMON(linear_s8, linear, linear, true)
BINARY_COMMON(mul_s8, mul, common_mul, r->y_shift < 0)
BINARY_COMMON(mul_once_s8, mul_once, common_mul_once, r->y_shift < 0)
BINARY(prelu_s8, prelu)
BINARY(prelu_once_s8, prelu_once)
BINARY(rescaled_sum_s8, sum)
BINARY(squared_s8, squared)
BINARY(sum_once_s8, sum_once)
BINARY(max_s8, max)
BINARY(min_s8, min)

uint32_t tinyml_check_binary_s8(struct tinyml_check *check)
{
	return binary_fixed_check_factors(check);
}

uint32_t tinyml_check_linear_s8(struct tinyml_check *check)
{
	const struct tinyml_play_binary_s8 *r = check->record;

	tinyml_check_that(check, r->y_shift >= 0 && r->y_shift <= 31);
	return binary_fixed_check(check);
}

uint32_t tinyml_check_sum_once_s8(struct tinyml_check *check)
{
	return binary_fixed_check_sum_once(check);
}
