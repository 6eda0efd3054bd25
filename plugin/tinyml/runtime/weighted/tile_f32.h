/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Float dot products of eight or four filters at once: each element of the input is loaded once for
 * all of them, and their sums do not wait for each other. The weights of the filters take turns,
 * one each.
 */

#ifndef TINYML_TILE_F32_H_
#define TINYML_TILE_F32_H_

#include <stdint.h>

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include <arm_mve.h>
#endif

#define TINYML_TILE 8

/* sums[i] += filter i · x over `count` elements. */
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)

static inline void tinyml_tile_f32(const float *x, const float *w, int32_t count,
				   float sums[TINYML_TILE])
{
	float32x4_t low = vldrwq_f32(sums), high = vldrwq_f32(&sums[4]);

	for (; count > 0; count--, x++, w += TINYML_TILE) {
		low = vfmaq_n_f32(low, vldrwq_f32(w), *x);
		high = vfmaq_n_f32(high, vldrwq_f32(&w[4]), *x);
	}
	vstrwq_f32(sums, low);
	vstrwq_f32(&sums[4], high);
}

#elif defined(__thumb2__) && defined(__ARM_FP) && (__ARM_FP & 4) && !defined(__SOFTFP__)

/* Compilers load every weight with an instruction of its own, and keep some sums in memory. A
 * product and a sum take a cycle each on the Cortex-M4, where a fused multiplication takes three;
 * later cores are better at the latter. */
#if __ARM_ARCH > 7 || (__ARM_FP & 8) /* not the Cortex-M4 */
/* clang-format off */
#define TINYML_TIMES(x)                                                                            \
	"vldmia %[w]!, {s8-s15}\n\t"                                                               \
	"vfma.f32 s0, s8, " x "\n\t"                                                               \
	"vfma.f32 s1, s9, " x "\n\t"                                                               \
	"vfma.f32 s2, s10, " x "\n\t"                                                              \
	"vfma.f32 s3, s11, " x "\n\t"                                                              \
	"vfma.f32 s4, s12, " x "\n\t"                                                              \
	"vfma.f32 s5, s13, " x "\n\t"                                                              \
	"vfma.f32 s6, s14, " x "\n\t"                                                              \
	"vfma.f32 s7, s15, " x "\n\t"
/* clang-format on */
#else
/* clang-format off */
#define TINYML_TIMES(x)                                                                            \
	"vldmia %[w]!, {s8-s15}\n\t"                                                               \
	"vmul.f32 s8, s8, " x "\n\t"                                                               \
	"vmul.f32 s9, s9, " x "\n\t"                                                               \
	"vmul.f32 s10, s10, " x "\n\t"                                                             \
	"vmul.f32 s11, s11, " x "\n\t"                                                             \
	"vmul.f32 s12, s12, " x "\n\t"                                                             \
	"vmul.f32 s13, s13, " x "\n\t"                                                             \
	"vmul.f32 s14, s14, " x "\n\t"                                                             \
	"vmul.f32 s15, s15, " x "\n\t"                                                             \
	"vadd.f32 s0, s0, s8\n\t"                                                                  \
	"vadd.f32 s1, s1, s9\n\t"                                                                  \
	"vadd.f32 s2, s2, s10\n\t"                                                                 \
	"vadd.f32 s3, s3, s11\n\t"                                                                 \
	"vadd.f32 s4, s4, s12\n\t"                                                                 \
	"vadd.f32 s5, s5, s13\n\t"                                                                 \
	"vadd.f32 s6, s6, s14\n\t"                                                                 \
	"vadd.f32 s7, s7, s15\n\t"
/* clang-format on */
#endif

_Static_assert(TINYML_TILE == 8, "assembly keeps eight sums in registers");
static inline void tinyml_tile_f32(const float *x, const float *w, int32_t count,
				   float sums[TINYML_TILE])
{
	if (count <= 0) {
		return;
	}
	/* clang-format off */
	__asm__ volatile(
		"vldmia %[sums], {s0-s7}\n\t"
		"lsrs %[count], %[count], #1\n\t"
		"bcc 1f\n\t" /* an odd element first */
		"vldmia %[x]!, {s16}\n\t"
		TINYML_TIMES("s16")
		"cmp %[count], #0\n\t"
		"1:\n\t"
		"beq 3f\n\t"
		"2:\n\t"
		"vldmia %[x]!, {s16-s17}\n\t"
		TINYML_TIMES("s16")
		TINYML_TIMES("s17")
		"subs %[count], #1\n\t"
		"bne 2b\n\t"
		"3:\n\t"
		"vstmia %[sums], {s0-s7}\n\t"
		: [x] "+r"(x), [w] "+r"(w), [count] "+l"(count)
		: [sums] "r"(sums)
		: "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11",
		  "s12", "s13", "s14", "s15", "s16", "s17", "cc", "memory");
	/* clang-format on */
}
#undef TINYML_TIMES

#else

static inline void tinyml_tile_f32(const float *x, const float *w, int32_t count,
				   float sums[TINYML_TILE])
{
	for (; count > 0; count--, x++, w += TINYML_TILE) {
		for (int32_t i = 0; i < TINYML_TILE; i++) {
			sums[i] += *x * w[i];
		}
	}
}

#endif

/* The same for four filters. The sums have names so that compilers keep them in registers. */
static inline void tinyml_tile4_f32(const float *x, const float *w, int32_t count, float sums[4])
{
	float s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];

	for (const float *end = x + count; x != end; x++, w += 4) {
		s0 += *x * w[0];
		s1 += *x * w[1];
		s2 += *x * w[2];
		s3 += *x * w[3];
	}
	sums[0] = s0;
	sums[1] = s1;
	sums[2] = s2;
	sums[3] = s3;
}

/* sum + filter · x for one filter. */
static inline float tinyml_dot_f32(const float *x, const float *w, int32_t count, float sum)
{
	for (int32_t i = 0; i < count; i++) {
		sum += x[i] * w[i];
	}
	return sum;
}

#endif /* TINYML_TILE_F32_H_ */
