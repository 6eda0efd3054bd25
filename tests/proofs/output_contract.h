/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What output_s8.c proves of weighted/output_s8.h, in place of its arithmetic. A harness includes
 * this before the kernel: the kernel must then keep what is required, and may get any output. */

#ifndef TINYML_PROOF_OUTPUT_CONTRACT_H_
#define TINYML_PROOF_OUTPUT_CONTRACT_H_

#define tinyml_output_s8 proved_output_s8
#include "weighted/output_s8.h"
#undef tinyml_output_s8

#include "proof.h"

#define MOST_SUM (INT32_MAX - 1023) /* as passes/bound_sums.py has it */

static inline int8_t tinyml_output_s8(int32_t acc, int32_t multiplier, int32_t shift,
				      const struct tinyml_output *to)
{
	const int8_t result = (int8_t)nondet_byte();

	(void)proved_output_s8;
#ifndef MEMORY /* of this, only memory is proved, of larger shapes */
	__CPROVER_assert(acc >= -MOST_SUM && acc <= MOST_SUM, "sums within their limit");
#endif
	__CPROVER_assert(multiplier >= 1 << 30, "normal multipliers");
	__CPROVER_assert(shift >= -31 && shift < 0, "negative shifts");
	__CPROVER_assume(result >= to->low && result <= to->high);
	return result;
}

/* What the compiler promises of an output channel, in a stream of filters. */
static inline void promise(int32_t bias, int32_t factor, int8_t exponent)
{
	__CPROVER_assume(bias >= -(1 << 30) && bias <= 1 << 30);
	__CPROVER_assume(((uint32_t)factor >> 1) >= 1u << 30);
	__CPROVER_assume(exponent >= 0 && exponent <= 30);
}

#endif /* TINYML_PROOF_OUTPUT_CONTRACT_H_ */
