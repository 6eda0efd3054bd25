/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Functions of two uint8 tensors. */

#define BINARY_TYPE uint8_t

#include "binary_fixed.h"

BINARY_COMMON(linear_u8, linear, linear, true)
BINARY_COMMON(mul_u8, mul, common_mul, r->y_shift < 0)
BINARY_COMMON(mul_once_u8, mul_once, common_mul_once, r->y_shift < 0)
BINARY(prelu_u8, prelu)
BINARY(prelu_once_u8, prelu_once)
BINARY(rescaled_sum_u8, sum)
BINARY(squared_u8, squared)
BINARY(sum_once_u8, sum_once)
BINARY(max_u8, max)
BINARY(min_u8, min)

uint32_t tinyml_check_binary_u8(struct tinyml_check *check)
{
	return binary_fixed_check_factors(check);
}

uint32_t tinyml_check_linear_u8(struct tinyml_check *check)
{
	const struct tinyml_play_binary_s8 *r = check->record;

	tinyml_check_that(check, r->y_shift >= 0 && r->y_shift <= 31);
	return binary_fixed_check(check);
}

uint32_t tinyml_check_sum_once_u8(struct tinyml_check *check)
{
	return binary_fixed_check_sum_once(check);
}
