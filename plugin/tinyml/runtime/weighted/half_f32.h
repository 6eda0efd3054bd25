/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Half-precision numbers of IEEE 754 as floats, which hold every one of them exactly. */

#ifndef TINYML_HALF_F32_H_
#define TINYML_HALF_F32_H_

#include <stdint.h>
#include <string.h>

/* Every FPU of a Cortex-M converts half-precision numbers. __ARM_FP has a bit for that, which GCC
 * leaves out for FPUs without double precision (Cortex-M4, M33), so only other cores are asked for
 * it.
 */
#if defined(__thumb2__) && defined(__ARM_FP) && (__ARM_FP & 4) && !defined(__SOFTFP__) &&          \
	((__ARM_FP & 2) || __ARM_ARCH_PROFILE == 'M')

static inline float tinyml_half_f32(uint16_t half)
{
	float value;

	__asm__("vmov %0, %1\n\tvcvtb.f32.f16 %0, %0" : "=t"(value) : "r"(half));
	return value;
}

#else

/* Zero and what is closer to it than the smallest normal number: steps of 2**-24. The other numbers
 * keep their fraction; an exponent of 31 means infinity or no number.
 */
static inline float tinyml_half_f32(uint16_t half)
{
	const uint32_t sign = (half & 0x8000U) << 16, rest = half & 0x7fffU;
	uint32_t bits = (rest << 13) + (112U << 23);
	float value;

	if (rest - 0x400U >= 0x7800U) {
		if (rest >= 0x7c00U) {
			bits += 112U << 23;
		} else {
			value = (float)(int32_t)rest * 0x1p-24f;
			memcpy(&bits, &value, sizeof(bits));
		}
	}
	bits |= sign;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

#endif

#endif /* TINYML_HALF_F32_H_ */
