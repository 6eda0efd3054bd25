/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The walk of depthwise_halves_s8.c for Thumb-2. */

#ifndef TINYML_DEPTHWISE_HALVES_ARMV7M_H_
#define TINYML_DEPTHWISE_HALVES_ARMV7M_H_

/* The multiplications add this to each sum of two products; T begins without it. */
#define ROUNDING         32768u
#define TWICE_ZERO(zero) (2 * (zero) + 1)

static inline void depthwise_halves_set_factor(struct walk *walk, int32_t multiplier, int32_t shift)
{
	walk->factor_low = (int32_t)((uint32_t)multiplier << 1);
	walk->factor_high = 0;
	walk->exponent = ~shift;
}

/* r0 what the walk is given, r1 elements, r2 P, r3 32768, r4 to r6 weights, r7 the sum of third
 * elements, r8 T, r9 to r11 elements, r12 y, lr down. */
/* clang-format off */
#define APART(sum)                                                                                 \
	"add r8, r8, " sum "\n\t"                                                                  \
	"add r2, r2, " sum ", asr #16\n\t"
#define ROW(addend)                                                                                \
	"ldm r0!, {r4-r6}\n\t"                                                                     \
	"ldm r1!, {r9-r11}\n\t"                                                                    \
	"mla r9, r4, r9, r3\n\t"                                                                   \
	"mla r7, r6, r11, " addend "\n\t"                                                          \
	"mla r9, r5, r10, r9\n\t"                                                                  \
	APART("r9")
#define WINDOW_3X3                                                                                 \
	"ldm r0!, {r2, r8}\n\t"                                                                    \
	ROW("r3")                                                                                  \
	"add r1, r1, lr\n\t"                                                                       \
	ROW("r7")                                                                                  \
	APART("r7")                                                                                \
	"add r1, r1, lr\n\t"                                                                       \
	ROW("r3")                                                                                  \
	APART("r7")
/* r6 is the end of the taps, r7 that of a row of elements, r11 its length. */
#define WINDOW_ANY                                                                                 \
	"ldrd r2, r8, [r0]\n\t"                                                                    \
	"ldr r11, [r0, #108]\n\t"                                                                  \
	"ldrd r0, r6, [r0, #100]\n\t"                                                              \
	"5:\n\t"                                                                                   \
	"add r7, r1, r11\n\t"                                                                      \
	"6:\n\t"                                                                                   \
	"ldm r0!, {r4, r5}\n\t"                                                                    \
	"ldm r1!, {r9, r10}\n\t"                                                                   \
	"mla r9, r4, r9, r3\n\t"                                                                   \
	"mla r9, r5, r10, r9\n\t"                                                                  \
	APART("r9")                                                                                \
	"cmp r1, r7\n\t"                                                                           \
	"bne 6b\n\t"                                                                               \
	"add r1, r1, lr\n\t"                                                                       \
	"cmp r0, r6\n\t"                                                                           \
	"bne 5b\n\t"                                                                               \
	"ldr r0, [sp]\n\t"                                                                         \
	"adds r0, #44\n\t"
#define OUTPUT(nudge, sign, a, at)                                                                 \
	"mov r7, #" nudge "\n\t"                                                                   \
	"smlal r7, " a ", " a ", r4\n\t"                                                           \
	sign(a)                                                                                    \
	"asr " a ", " a ", r6\n\t"                                                                 \
	"add " a ", " a ", r10\n\t"                                                                \
	"ssat " a ", #8, " a ", asr #1\n\t"                                                        \
	"strb " a ", [r12" at "]\n\t"
#define AS_IT_IS(a)  ""
#define FROM_ZERO(a) "add " a ", " a ", " a ", asr #31\n\t" /* negative halves */
#define WALK(name, window, nudge, sign)                                                            \
	TINYML_ASSEMBLY static void name(struct walk *walk TINYML_UNSEEN)                          \
	{                                                                                          \
		__asm__ volatile(                                                                  \
			"push {r0, r4-r11, lr}\n\t"                                                \
			"ldr lr, [r0, #76]\n\t"                                                    \
			"mov r3, #32768\n\t"                                                       \
			"1:\n\t"                                                                   \
			"ldr r1, [r0, #80]\n\t"                                                    \
			"ldr r12, [r0, #84]\n\t"                                                   \
			"2:\n\t"                                                                   \
			window                                                                     \
			"ldm r0!, {r4-r6, r10, r11}\n\t"                                           \
			"sub r8, r8, r2, lsl #16\n\t"                                              \
			OUTPUT(nudge, sign, "r2", ", r11")                                         \
			OUTPUT(nudge, sign, "r8", "")                                              \
			"ldm r0!, {r4-r6}\n\t"                                                     \
			"add r1, r1, r4\n\t"                                                       \
			"add r12, r12, r5\n\t"                                                     \
			"subs r0, #76\n\t"                                                         \
			"cmp r1, r6\n\t"                                                           \
			"bne 2b\n\t"                                                               \
			"ldrd r4, r5, [r0, #80]\n\t"                                               \
			"ldrd r6, r7, [r0, #88]\n\t"                                               \
			"ldr r8, [r0, #72]\n\t"                                                    \
			"ldr r9, [r0, #96]\n\t"                                                    \
			"add r4, r4, r6\n\t"                                                       \
			"add r5, r5, r7\n\t"                                                       \
			"add r8, r8, r6\n\t"                                                       \
			"strd r4, r5, [r0, #80]\n\t"                                               \
			"str r8, [r0, #72]\n\t"                                                    \
			"subs r9, r9, #1\n\t"                                                      \
			"str r9, [r0, #96]\n\t"                                                    \
			"bne 1b\n\t"                                                               \
			"pop {r0, r4-r11, pc}\n\t");                                               \
	}
/* clang-format on */
WALK(depthwise_halves_walk_3x3_once, WINDOW_3X3, "0", AS_IT_IS)
WALK(depthwise_halves_walk_3x3_twice, WINDOW_3X3, "0x80000000", FROM_ZERO)
WALK(depthwise_halves_walk_any_once, WINDOW_ANY, "0", AS_IT_IS)
WALK(depthwise_halves_walk_any_twice, WINDOW_ANY, "0x80000000", FROM_ZERO)
#undef WALK
#undef FROM_ZERO
#undef AS_IT_IS
#undef OUTPUT
#undef WINDOW_ANY
#undef WINDOW_3X3
#undef ROW
#undef APART

#endif /* TINYML_DEPTHWISE_HALVES_ARMV7M_H_ */
