/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Functions of two int16 tensors. */

#define BINARY_TYPE int16_t

#include "binary_fixed.h"

BINARY_COMMON(mul_s16, mul, common_mul, r->y_shift < 0)
BINARY_COMMON(mul_once_s16, mul_once, common_mul_once, r->y_shift < 0)
BINARY(prelu_s16, prelu)
BINARY(prelu_once_s16, prelu_once)
BINARY(rescaled_sum_s16, sum)
BINARY(squared_s16, squared)
BINARY(sum_once_s16, sum_once)
BINARY(max_s16, max)
BINARY(min_s16, min)

uint32_t tinyml_check_binary_s16(struct tinyml_check *check)
{
	return binary_fixed_check_factors(check);
}

uint32_t tinyml_check_sum_once_s16(struct tinyml_check *check)
{
	return binary_fixed_check_sum_once(check);
}
