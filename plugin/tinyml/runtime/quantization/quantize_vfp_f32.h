/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Blocks of four elements with Arm's scalar FPU. Compilers do not convert with the rounding of the
 * FPU, and move every result to an integer register alone.
 */

#ifndef TINYML_QUANTIZE_VFP_F32_H_
#define TINYML_QUANTIZE_VFP_F32_H_

/* clang-format off */

#define QUANTIZE_VFP_EACH(before, between, after)                                                  \
	before "s0" between "s0" after "\n\t"                                                      \
	before "s1" between "s1" after "\n\t"                                                      \
	before "s2" between "s2" after "\n\t"                                                      \
	before "s3" between "s3" after "\n\t"

#define QUANTIZE_VFP_STEPS                                                                         \
	"1:\n\t"                                                                                   \
	"vldmia %[x]!, {s0-s3}\n\t"                                                                \
	QUANTIZE_VFP_EACH("vdiv.f32 ", ", ", ", %[scale]")

#define QUANTIZE_VFP_MOVE                                                                          \
	"vmov %[a], %[b], s0, s1\n\t"                                                              \
	"vmov %[c], %[d], s2, s3\n\t"

#define QUANTIZE_VFP_NEXT                                                                          \
	"subs %[blocks], #1\n\t"                                                                   \
	"bne 1b\n\t"

#if __ARM_ARCH > 7 || (__ARM_FP & 8) /* not the Cortex-M4 */

/* The maximum of a NaN and a number is the number. Steps within the limits are added to the zero
 * point in the elements of a word, where carries out of the type do not matter.
 */
#define QUANTIZE_VFP_LIMITED                                                                       \
	QUANTIZE_VFP_STEPS                                                                         \
	QUANTIZE_VFP_EACH("vmaxnm.f32 ", ", ", ", %[low]")                                         \
	QUANTIZE_VFP_EACH("vminnm.f32 ", ", ", ", %[high]")

#define QUANTIZE_VFP_EVEN                                                                          \
	QUANTIZE_VFP_LIMITED                                                                       \
	QUANTIZE_VFP_EACH("vcvtn.s32.f32 ", ", ", "")                                              \
	QUANTIZE_VFP_MOVE
#define QUANTIZE_VFP_AWAY                                                                          \
	QUANTIZE_VFP_LIMITED                                                                       \
	QUANTIZE_VFP_EACH("vcvta.s32.f32 ", ", ", "")                                              \
	QUANTIZE_VFP_MOVE

#define QUANTIZE_VFP_BYTES                                                                         \
	"bfi %[a], %[b], #8, #8\n\t"                                                               \
	"bfi %[a], %[c], #16, #8\n\t"                                                              \
	"bfi %[a], %[d], #24, #8\n\t"                                                              \
	"uadd8 %[a], %[a], %[zero]\n\t"                                                            \
	"str %[a], [%[y]], #4\n\t"
#define QUANTIZE_VFP_HALFWORDS                                                                     \
	"pkhbt %[a], %[a], %[b], lsl #16\n\t"                                                      \
	"pkhbt %[c], %[c], %[d], lsl #16\n\t"                                                      \
	"uadd16 %[a], %[a], %[zero]\n\t"                                                           \
	"uadd16 %[c], %[c], %[zero]\n\t"                                                           \
	"str %[a], [%[y]], #4\n\t"                                                                 \
	"str %[c], [%[y]], #4\n\t"

#define QUANTIZE_VFP_even_s8  QUANTIZE_VFP_EVEN QUANTIZE_VFP_BYTES QUANTIZE_VFP_NEXT
#define QUANTIZE_VFP_even_s16 QUANTIZE_VFP_EVEN QUANTIZE_VFP_HALFWORDS QUANTIZE_VFP_NEXT
#define QUANTIZE_VFP_away_s8  QUANTIZE_VFP_AWAY QUANTIZE_VFP_BYTES QUANTIZE_VFP_NEXT
#define QUANTIZE_VFP_away_s16 QUANTIZE_VFP_AWAY QUANTIZE_VFP_HALFWORDS QUANTIZE_VFP_NEXT

#define QUANTIZE_VFP_ZERO_even_s8(zero)  (0x01010101U * (uint8_t)(zero))
#define QUANTIZE_VFP_ZERO_even_s16(zero) (0x00010001U * (uint16_t)(zero))
#define QUANTIZE_VFP_ZERO_away_s8(zero)  QUANTIZE_VFP_ZERO_even_s8(zero)
#define QUANTIZE_VFP_ZERO_away_s16(zero) QUANTIZE_VFP_ZERO_even_s16(zero)

#else

/* A conversion of NaN gives 0. If one of the steps may be NaN, which their sum tells, those that
 * are become the lowest number instead.
 */
#define QUANTIZE_VFP_LIMITED                                                                       \
	QUANTIZE_VFP_STEPS                                                                         \
	"vadd.f32 s4, s0, s1\n\t"                                                                  \
	"vadd.f32 s5, s2, s3\n\t"                                                                  \
	"vadd.f32 s4, s4, s5\n\t"                                                                  \
	"vcmp.f32 s4, s4\n\t"                                                                      \
	"vmrs APSR_nzcv, fpscr\n\t"                                                                \
	"bvs 3f\n\t"                                                                               \
	"2:\n\t"

#define QUANTIZE_VFP_NUMBER(s)                                                                     \
	"vcmp.f32 " s ", " s "\n\t"                                                                \
	"vmrs APSR_nzcv, fpscr\n\t"                                                                \
	"it vs\n\t"                                                                                \
	"vmovvs.f32 " s ", %[low]\n\t"
#define QUANTIZE_VFP_LAST                                                                          \
	QUANTIZE_VFP_NEXT                                                                          \
	"b 4f\n\t"                                                                                 \
	"3:\n\t"                                                                                   \
	QUANTIZE_VFP_NUMBER("s0")                                                                  \
	QUANTIZE_VFP_NUMBER("s1")                                                                  \
	QUANTIZE_VFP_NUMBER("s2")                                                                  \
	QUANTIZE_VFP_NUMBER("s3")                                                                  \
	"b 2b\n\t"                                                                                 \
	"4:\n\t"

#define QUANTIZE_VFP_EVEN_ONE(bits, store, bytes, r)                                               \
	"qadd " r ", " r ", %[zero]\n\t"                                                           \
	"ssat " r ", #" bits ", " r "\n\t"                                                         \
	store " " r ", [%[y]], #" bytes "\n\t"

/* There is no conversion that rounds halves away from zero, but one that leaves a bit below the
 * point and rounds towards zero. Of negative numbers that bit is a reason to round down, of others
 * to round up. `zero` is in halves and has the half that is added.
 */
#define QUANTIZE_VFP_AWAY_ONE(bits, store, bytes, r)                                               \
	"ssat " r ", #24, " r "\n\t"                                                               \
	"add " r ", " r ", " r ", asr #31\n\t"                                                     \
	"add " r ", " r ", %[zero]\n\t"                                                            \
	"ssat " r ", #" bits ", " r ", asr #1\n\t"                                                 \
	store " " r ", [%[y]], #" bytes "\n\t"

#define QUANTIZE_VFP_FOUR(ONE, bits, store, bytes)                                                 \
	QUANTIZE_VFP_MOVE                                                                          \
	ONE(bits, store, bytes, "%[a]")                                                            \
	ONE(bits, store, bytes, "%[b]")                                                            \
	ONE(bits, store, bytes, "%[c]")                                                            \
	ONE(bits, store, bytes, "%[d]")                                                            \
	QUANTIZE_VFP_LAST

#define QUANTIZE_VFP_EVEN(bits, store, bytes)                                                      \
	QUANTIZE_VFP_LIMITED                                                                       \
	QUANTIZE_VFP_EACH("vcvtr.s32.f32 ", ", ", "")                                              \
	QUANTIZE_VFP_FOUR(QUANTIZE_VFP_EVEN_ONE, bits, store, bytes)
#define QUANTIZE_VFP_AWAY(bits, store, bytes)                                                      \
	QUANTIZE_VFP_LIMITED                                                                       \
	QUANTIZE_VFP_EACH("vcvt.s32.f32 ", ", ", ", #1")                                           \
	QUANTIZE_VFP_FOUR(QUANTIZE_VFP_AWAY_ONE, bits, store, bytes)

#define QUANTIZE_VFP_even_s8  QUANTIZE_VFP_EVEN("8", "strb", "1")
#define QUANTIZE_VFP_even_s16 QUANTIZE_VFP_EVEN("16", "strh", "2")
#define QUANTIZE_VFP_away_s8  QUANTIZE_VFP_AWAY("8", "strb", "1")
#define QUANTIZE_VFP_away_s16 QUANTIZE_VFP_AWAY("16", "strh", "2")

#define QUANTIZE_VFP_ZERO_even_s8(zero)  (uint32_t)(zero)
#define QUANTIZE_VFP_ZERO_even_s16(zero) (uint32_t)(zero)
#define QUANTIZE_VFP_ZERO_away_s8(zero)  (uint32_t)(2 * (zero) + 1)
#define QUANTIZE_VFP_ZERO_away_s16(zero) QUANTIZE_VFP_ZERO_away_s8(zero)

#endif

#define QUANTIZE_BLOCKS(way, kind, type, lowest, highest)                                          \
	void tinyml_quantize_##way##_f32_##kind(const struct tinyml_quantize_f32 *p,               \
						const float *x, type *y)                           \
	{                                                                                          \
		const uint32_t zero = QUANTIZE_VFP_ZERO_##way##_##kind(p->zero);                   \
		const float low = (float)((lowest) - p->zero), high = (float)((highest) - p->zero);\
		int32_t blocks = p->count / 4, a, b, c, d;                                         \
                                                                                                   \
		__asm__ volatile(                                                                  \
			QUANTIZE_VFP_##way##_##kind                                                \
			: [x] "+r"(x), [y] "+r"(y), [blocks] "+l"(blocks), [a] "=&r"(a),           \
			  [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d)                                 \
			: [zero] "r"(zero), [scale] "t"(p->scale), [low] "t"(low), [high] "t"(high)\
			: "s0", "s1", "s2", "s3", "s4", "s5", "cc", "memory");                     \
	}
/* clang-format on */

#endif /* TINYML_QUANTIZE_VFP_F32_H_ */
