/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The inner loops of conv_halves_s8.c for Thumb-2. */

#ifndef TINYML_CONV_HALVES_ARMV7M_H_
#define TINYML_CONV_HALVES_ARMV7M_H_

/* The sums of a filter at windows 0 to 3 in r4 to r7. Takes the filter (r0), elements of the
 * windows (r1) and their end (r2); r0 is what follows the weights. Assembly only.
 *
 * T is in r4 and r6, P in r5 and r7. The multiplications add the 32768, without which T begins.
 * Eight elements in a round; the first four are skipped if their number is not a multiple. */
#if WEIGHT_BITS == 8
#define CONV_HALVES_DOT "tinyml_conv_halves_armv7m"
void tinyml_conv_halves_armv7m(void);

__attribute__((naked, noinline, used)) void tinyml_conv_halves_armv7m(void)
{
	/* clang-format off */
#define TWO                                                                                        \
	"ldrsb r12, [r0], #1\n\t"                                                                  \
	"ldm r1!, {r8-r11}\n\t"                                                                    \
	"mla r8, r12, r8, r3\n\t"                                                                  \
	"mla r10, r12, r10, r3\n\t"                                                                \
	"ldrsb r12, [r0], #1\n\t"                                                                  \
	"mla r8, r12, r9, r8\n\t"                                                                  \
	"mla r10, r12, r11, r10\n\t"                                                               \
	"add r4, r4, r8\n\t"                                                                       \
	"add r6, r6, r10\n\t"                                                                      \
	"add r5, r5, r8, asr #16\n\t"                                                              \
	"add r7, r7, r10, asr #16\n\t"
	__asm__ volatile(
		"ldr r5, [r0], #4\n\t"
		"sub r12, r2, r1\n\t" /* 8 bytes an element, and 32768 for every two */
		"add r4, r5, r5, lsl #16\n\t"
		"sub r4, r4, r12, lsl #11\n\t"
		"mov r6, r4\n\t"
		"mov r7, r5\n\t"
		"mov r3, #32768\n\t"
		"tst r12, #32\n\t"
		"bne 2f\n\t"
		"1:\n\t"
		TWO
		TWO
		"2:\n\t"
		TWO
		TWO
		"cmp r1, r2\n\t"
		"bne 1b\n\t"
		"sub r4, r4, r5, lsl #16\n\t"
		"sub r6, r6, r7, lsl #16\n\t"
		"bx lr\n\t");
	/* clang-format on */
#undef TWO
}
#else
#define CONV_HALVES_DOT "tinyml_conv_nibbles_armv7m"
void tinyml_conv_nibbles_armv7m(void);

/* The same with weights of four bits: the products of eight elements begin with 32768. If the
 * elements are not a multiple of eight, the first four are skipped. */
__attribute__((naked, noinline, used)) void tinyml_conv_nibbles_armv7m(void)
{
	/* clang-format off */
#define ELEMENT(at, a, b)                                                                          \
	"sbfx lr, r12, #" at ", #4\n\t"                                                            \
	"mla r2, lr, " a ", r2\n\t"                                                                \
	"mla r3, lr, " b ", r3\n\t"
#define TWO(first, second)                                                                         \
	"ldm r1!, {r8-r11}\n\t"                                                                    \
	ELEMENT(first, "r8", "r9")                                                                 \
	ELEMENT(second, "r10", "r11")
#define BEGIN                                                                                      \
	"ldr r12, [r0], #4\n\t"                                                                    \
	"mov r2, #32768\n\t"                                                                       \
	"mov r3, #32768\n\t"
	__asm__ volatile(
		"push {r2, lr}\n\t"
		"ldr r5, [r0], #4\n\t"
		"sub r12, r2, r1\n\t" /* 64 bytes for eight elements */
		"add r3, r12, #32\n\t"
		"lsr r3, r3, #6\n\t"
		"add r4, r5, r5, lsl #16\n\t"
		"sub r4, r4, r3, lsl #15\n\t"
		"mov r6, r4\n\t"
		"mov r7, r5\n\t"
		"tst r12, #32\n\t"
		BEGIN
		"bne 2f\n\t"
		"1:\n\t"
		TWO("0", "4")
		TWO("8", "12")
		"2:\n\t"
		TWO("16", "20")
		TWO("24", "28")
		"add r5, r5, r2, asr #16\n\t"
		"add r4, r4, r2\n\t"
		"add r7, r7, r3, asr #16\n\t"
		"add r6, r6, r3\n\t"
		"ldr r12, [sp]\n\t"
		"cmp r1, r12\n\t"
		"beq 3f\n\t"
		BEGIN
		"b 1b\n\t"
		"3:\n\t"
		"sub r4, r4, r5, lsl #16\n\t"
		"sub r6, r6, r7, lsl #16\n\t"
		"pop {r2, pc}\n\t");
	/* clang-format on */
#undef BEGIN
#undef TWO
#undef ELEMENT
}
#endif

/* All filters at four windows, the last window first; outputs are limited to int8 only. */
/* clang-format off */
#define OUTPUT(nudge, sign, a, at)                                                                 \
	"mov r3, #" nudge "\n\t"                                                                   \
	"smlal r3, " a ", " a ", r1\n\t"                                                           \
	sign(a)                                                                                    \
	"asr " a ", " a ", r2\n\t"                                                                 \
	"add " a ", " a ", r9\n\t"                                                                 \
	"ssat " a ", #8, " a ", asr #1\n\t"                                                        \
	"strb " a ", [r8" at "]\n\t"
#define AS_IT_IS(a)  ""
#define FROM_ZERO(a) "add " a ", " a ", " a ", asr #31\n\t" /* negative halves */
#define FILTERS(name, nudge, sign)                                                                 \
	TINYML_ASSEMBLY static void name(                                                          \
		const int32_t *filters TINYML_UNSEEN, const int32_t *halves TINYML_UNSEEN,         \
		const int32_t *end TINYML_UNSEEN, struct outputs *to TINYML_UNSEEN)                \
	{                                                                                          \
		__asm__ volatile(                                                                  \
			"push {r1-r11, lr}\n\t"                                                    \
			"1:\n\t"                                                                   \
			"bl " CONV_HALVES_DOT "\n\t"                                         \
			"ldr lr, [sp, #8]\n\t"                                                     \
			"ldrd r1, r2, [r0], #8\n\t"                                                \
			"ldm lr, {r8-r12}\n\t"                                                     \
			OUTPUT(nudge, sign, "r7", ", r12")                                         \
			OUTPUT(nudge, sign, "r6", ", r11")                                         \
			OUTPUT(nudge, sign, "r5", ", r10")                                         \
			OUTPUT(nudge, sign, "r4", "")                                              \
			"ldr r12, [lr, #20]\n\t"                                                   \
			"adds r8, #1\n\t"                                                          \
			"str r8, [lr]\n\t"                                                         \
			"ldrd r1, r2, [sp]\n\t"                                                    \
			"cmp r8, r12\n\t"                                                          \
			"bne 1b\n\t"                                                               \
			"pop {r1-r11, pc}\n\t");                                                   \
	}
/* clang-format on */
FILTERS(conv_halves_filters_once, "0", AS_IT_IS)
FILTERS(conv_halves_filters_twice, "0x80000000", FROM_ZERO)
#undef FILTERS
#undef FROM_ZERO
#undef AS_IT_IS
#undef OUTPUT

/* The sums of one filter; returns what follows its weights. */
TINYML_ASSEMBLY static const int32_t *conv_halves_dot_filter(const int32_t *filter TINYML_UNSEEN,
							     const int32_t *halves TINYML_UNSEEN,
							     const int32_t *end TINYML_UNSEEN,
							     int32_t *sums TINYML_UNSEEN)
{
	/* clang-format off */
	__asm__ volatile(
		"push {r3-r11, lr}\n\t"
		"bl " CONV_HALVES_DOT "\n\t"
		"pop {r3}\n\t"
		"stm r3, {r4-r7}\n\t"
		"pop {r4-r11, pc}\n\t");
	/* clang-format on */
}

#endif /* TINYML_CONV_HALVES_ARMV7M_H_ */
