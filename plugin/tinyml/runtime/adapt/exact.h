/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* For files whose float32 has to be the same in every bit on all cores: no fused operations. It is
 * included first. Code that learns runs rarely, so it is small. */

#ifndef TINYML_ADAPT_EXACT_H_
#define TINYML_ADAPT_EXACT_H_

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("Os", "fp-contract=off")
#endif

#include <tinyml/adapt.h>

/* Whether a number is one, and far from the largest. */
static inline bool exact_is_usual(float x)
{
	return x < 1e30f && x > -1e30f;
}

#endif /* TINYML_ADAPT_EXACT_H_ */
