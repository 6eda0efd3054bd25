/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Sums of floats times weights of four bits, which are steps from 0 to 15, eight to a word. */

#ifndef TINYML_STEPS_S4_H_
#define TINYML_STEPS_S4_H_

#include <stdint.h>

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include <arm_mve.h>
#endif

#define TINYML_STEPS_WORD 8

/* A table is faster than a conversion in software, and as fast as one in hardware. */
static const float tinyml_steps_s4_real[16] = {
	0.0f, 1.0f, 2.0f,  3.0f,  4.0f,  5.0f,  6.0f,  7.0f,
	8.0f, 9.0f, 10.0f, 11.0f, 12.0f, 13.0f, 14.0f, 15.0f,
};

/* Element `i` of a word: 0 to 3 in the lower halves of its bytes, 4 to 7 in the upper ones. */
static inline float tinyml_steps_s4_element(uint32_t word, int32_t i)
{
	return tinyml_steps_s4_real[(word >> ((i & 3) * 8 + (i & 4))) & 15U];
}

/*
 * tinyml_steps_s4_words: x · steps of whole words, as a sum of the kind that the core adds up
 * fastest. tinyml_steps_s4_times: another sum times the scale of its block, added to the total of a
 * filter.
 */
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)

typedef float32x4_t tinyml_steps_s4_sum;

#define TINYML_STEPS_S4_NOTHING vdupq_n_f32(0.0f)

static inline tinyml_steps_s4_sum tinyml_steps_s4_words(const float *x, const uint32_t *w,
							uint32_t words)
{
	const uint32x4_t lower = vdupq_n_u32(15);
	float32x4_t even = vdupq_n_f32(0.0f), odd = vdupq_n_f32(0.0f);

	for (; words > 0; words--, x += TINYML_STEPS_WORD, w++) {
		const uint32x4_t bytes = vldrbq_u32((const uint8_t *)w);

		even = vfmaq_f32(even, vcvtq_f32_u32(vandq_u32(bytes, lower)), vldrwq_f32(x));
		odd = vfmaq_f32(odd, vcvtq_f32_u32(vshrq_n_u32(bytes, 4)), vldrwq_f32(&x[4]));
	}
	return vaddq_f32(even, odd);
}

static inline tinyml_steps_s4_sum tinyml_steps_s4_times(tinyml_steps_s4_sum total,
							tinyml_steps_s4_sum sum, float scale)
{
	return vfmaq_n_f32(total, sum, scale);
}

static inline float tinyml_steps_s4_total(tinyml_steps_s4_sum total)
{
	return (vgetq_lane_f32(total, 0) + vgetq_lane_f32(total, 1)) +
	       (vgetq_lane_f32(total, 2) + vgetq_lane_f32(total, 3));
}

#else

typedef float tinyml_steps_s4_sum;

#define TINYML_STEPS_S4_NOTHING 0.0f

static inline tinyml_steps_s4_sum tinyml_steps_s4_times(tinyml_steps_s4_sum total,
							tinyml_steps_s4_sum sum, float scale)
{
	return total + sum * scale;
}

static inline float tinyml_steps_s4_total(tinyml_steps_s4_sum total)
{
	return total;
}

#if defined(__thumb2__) && defined(__ARM_FP) && (__ARM_FP & 4) && !defined(__SOFTFP__)

/* The bits 6 to 9 of a half-precision number alone are a step times 2**-18, so that one AND and one
 * move give two of them, and a conversion each makes them floats. A product and a sum take a cycle
 * each on the Cortex-M4, where a fused multiplication takes three. */
#if __ARM_ARCH > 7 || (__ARM_FP & 8) /* not the Cortex-M4 */
/* clang-format off */
#define TINYML_STEPS_TWO(shift, first, second)                                                     \
	"and %[two], %[mask], %[word], " shift "\n\t"                                              \
	"vmov s2, %[two]\n\t"                                                                      \
	"vcvtt.f32.f16 s3, s2\n\t"                                                                 \
	"vcvtb.f32.f16 s2, s2\n\t"                                                                 \
	"vfma.f32 s1, s3, " second "\n\t"                                                          \
	"vfma.f32 s0, s2, " first "\n\t"
/* clang-format on */
#else
/* clang-format off */
#define TINYML_STEPS_TWO(shift, first, second)                                                     \
	"and %[two], %[mask], %[word], " shift "\n\t"                                              \
	"vmov s2, %[two]\n\t"                                                                      \
	"vcvtt.f32.f16 s3, s2\n\t"                                                                 \
	"vcvtb.f32.f16 s2, s2\n\t"                                                                 \
	"vmul.f32 s3, s3, " second "\n\t"                                                          \
	"vmul.f32 s2, s2, " first "\n\t"                                                           \
	"vadd.f32 s1, s1, s3\n\t"                                                                  \
	"vadd.f32 s0, s0, s2\n\t"
/* clang-format on */
#endif

_Static_assert(TINYML_STEPS_WORD == 8, "assembly keeps eight elements of the input in registers");
static inline tinyml_steps_s4_sum tinyml_steps_s4_words(const float *x, const uint32_t *w,
							uint32_t words)
{
	uint32_t word, two;
	float sum;

	if (words == 0) {
		return 0.0f;
	}
	/* clang-format off */
	__asm__ volatile(
		"vmov s0, %[zero]\n\t"
		"vmov s1, %[zero]\n\t"
		"1:\n\t"
		"ldr %[word], [%[w]], #4\n\t"
		"vldmia %[x]!, {s8-s15}\n\t"
		TINYML_STEPS_TWO("lsl #6", "s8", "s10")
		TINYML_STEPS_TWO("lsr #2", "s9", "s11")
		TINYML_STEPS_TWO("lsl #2", "s12", "s14")
		TINYML_STEPS_TWO("lsr #6", "s13", "s15")
		"subs %[words], #1\n\t"
		"bne 1b\n\t"
		"vadd.f32 %[sum], s0, s1\n\t"
		: [x] "+r"(x), [w] "+r"(w), [words] "+l"(words), [word] "=&r"(word),
		  [two] "=&r"(two), [sum] "=t"(sum)
		: [zero] "r"(0), [mask] "r"(0x03c003c0U)
		: "s0", "s1", "s2", "s3", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15",
		  "cc", "memory");
	/* clang-format on */
	return sum * 262144.0f;
}
#undef TINYML_STEPS_TWO

#else

static inline tinyml_steps_s4_sum tinyml_steps_s4_words(const float *x, const uint32_t *w,
							uint32_t words)
{
	float sum = 0.0f;

	for (; words > 0; words--, w++) {
		const uint32_t word = *w;

		for (int32_t i = 0; i < TINYML_STEPS_WORD; i++) {
			sum += *x++ * tinyml_steps_s4_element(word, i);
		}
	}
	return sum;
}

#endif
#endif

#endif /* TINYML_STEPS_S4_H_ */
