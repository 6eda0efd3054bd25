/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The inner loops of conv_halves_s8.c for Armv6-M: most instructions reach eight registers only,
 * and multiplications replace a factor. */

#ifndef TINYML_CONV_HALVES_ARMV6M_H_
#define TINYML_CONV_HALVES_ARMV6M_H_

#include "../weighted/output_armv6m.h"

/* The sums of a filter at windows 0 to 3 in r8, r4, r9 and r5. Takes the filter (r0), elements of
 * the windows (r1) and their end (r2); r0 is what follows the weights. Assembly only.
 *
 * T is in r8 and r9, P in r4 and r5: the carry of the shift rounds what is added. Eight elements in
 * a round; the first four are skipped if their number is not a multiple. */
#if WEIGHT_BITS == 8
#define CONV_HALVES_DOT "tinyml_conv_halves_armv6m"
void tinyml_conv_halves_armv6m(void);

__attribute__((naked, noinline, used)) void tinyml_conv_halves_armv6m(void)
{
	/* clang-format off */
#define HALVES(t, p)                                                                               \
	"ldm r1!, {r6, r7}\n\t"                                                                    \
	"muls r6, r2, r6\n\t"                                                                      \
	"muls r7, r3, r7\n\t"                                                                      \
	"adds r6, r6, r7\n\t"                                                                      \
	"add " t ", r6\n\t"                                                                        \
	"asrs r6, r6, #16\n\t"                                                                     \
	"adcs " p ", r6\n\t"
#define TWO(i, j)                                                                                  \
	"movs r2, #" i "\n\t"                                                                      \
	"movs r3, #" j "\n\t"                                                                      \
	"ldrsb r2, [r0, r2]\n\t"                                                                   \
	"ldrsb r3, [r0, r3]\n\t"                                                                   \
	HALVES("r8", "r4")                                                                         \
	HALVES("r9", "r5")
	__asm__ volatile(
		".syntax unified\n\t"
		"mov r12, r2\n\t"
		"ldm r0!, {r4}\n\t"
		"lsls r3, r4, #16\n\t"
		"adds r3, r3, r4\n\t"
		"mov r8, r3\n\t"
		"mov r9, r3\n\t"
		"movs r5, r4\n\t"
		"subs r2, r2, r1\n\t"
		"lsls r2, r2, #26\n\t" /* 8 bytes an element */
		"bpl 1f\n\t"
		"subs r0, #4\n\t"
		"b 2f\n\t"
		"1:\n\t"
		TWO("0", "1")
		TWO("2", "3")
		"2:\n\t"
		TWO("4", "5")
		TWO("6", "7")
		"adds r0, #8\n\t"
		"cmp r1, r12\n\t"
		"bne 1b\n\t"
		"mov r2, r8\n\t"
		"mov r3, r9\n\t"
		"lsls r6, r4, #16\n\t"
		"lsls r7, r5, #16\n\t"
		"subs r2, r2, r6\n\t"
		"subs r3, r3, r7\n\t"
		"mov r8, r2\n\t"
		"mov r9, r3\n\t"
		"bx lr\n\t");
	/* clang-format on */
#undef TWO
#undef HALVES
}
#else
#define CONV_HALVES_DOT "tinyml_conv_nibbles_armv6m"
void tinyml_conv_nibbles_armv6m(void);

/* The same with weights of four bits: the products of eight elements begin with 32768. If the
 * elements are not a multiple of eight, the first four are skipped. r4 and r5 are products, r12 and
 * lr are P until the end. */
__attribute__((naked, noinline, used)) void tinyml_conv_nibbles_armv6m(void)
{
	/* clang-format off */
#define PRODUCTS                                                                                   \
	"asrs r2, r2, #28\n\t"                                                                     \
	"ldm r1!, {r6, r7}\n\t"                                                                    \
	"muls r6, r2, r6\n\t"                                                                      \
	"muls r7, r2, r7\n\t"                                                                      \
	"adds r4, r4, r6\n\t"                                                                      \
	"adds r5, r5, r7\n\t"
#define ELEMENT(left)                                                                              \
	"lsls r2, r3, #" left "\n\t"                                                               \
	PRODUCTS
#define BEGIN                                                                                      \
	"ldm r0!, {r3}\n\t"                                                                        \
	"movs r4, #128\n\t"                                                                        \
	"lsls r4, r4, #8\n\t"                                                                      \
	"movs r5, r4\n\t"
	__asm__ volatile(
		".syntax unified\n\t"
		"push {r2, lr}\n\t"
		"ldm r0!, {r4}\n\t"
		"mov r12, r4\n\t"
		"mov lr, r4\n\t"
		"subs r2, r2, r1\n\t" /* 64 bytes for eight elements */
		"movs r3, r2\n\t"
		"adds r3, #32\n\t"
		"lsrs r3, r3, #6\n\t"
		"lsls r3, r3, #15\n\t"
		"lsls r5, r4, #16\n\t"
		"adds r5, r5, r4\n\t"
		"subs r5, r5, r3\n\t"
		"mov r8, r5\n\t"
		"mov r9, r5\n\t"
		BEGIN
		"lsls r2, r2, #26\n\t"
		"bmi 2f\n\t"
		"1:\n\t"
		ELEMENT("28")
		ELEMENT("24")
		ELEMENT("20")
		ELEMENT("16")
		"2:\n\t"
		ELEMENT("12")
		ELEMENT("8")
		ELEMENT("4")
		"movs r2, r3\n\t"
		PRODUCTS
		"add r8, r4\n\t"
		"add r9, r5\n\t"
		"asrs r4, r4, #16\n\t"
		"asrs r5, r5, #16\n\t"
		"add r12, r4\n\t"
		"add lr, r5\n\t"
		"ldr r6, [sp]\n\t"
		"cmp r1, r6\n\t"
		"beq 3f\n\t"
		BEGIN
		"b 1b\n\t"
		"3:\n\t"
		"mov r4, r12\n\t"
		"mov r5, lr\n\t"
		"mov r2, r8\n\t"
		"mov r3, r9\n\t"
		"lsls r6, r4, #16\n\t"
		"lsls r7, r5, #16\n\t"
		"subs r2, r2, r6\n\t"
		"subs r3, r3, r7\n\t"
		"mov r8, r2\n\t"
		"mov r9, r3\n\t"
		"pop {r2, pc}\n\t");
	/* clang-format on */
#undef BEGIN
#undef ELEMENT
#undef PRODUCTS
}
#endif

/* All filters at four windows, the last window first; outputs are limited to int8 only. */
/* clang-format off */
#define OUTPUT(add, sign, sum, store)                                                              \
	"mov r0, " sum "\n\t"                                                                      \
	"sxth r1, r0\n\t"                                                                          \
	"subs r0, r0, r1\n\t"                                                                      \
	TINYML_OUTPUT_ARMV6M(add, sign)                                                            \
	"mov r1, r11\n\t"                                                                          \
	store
#define AT(place) "ldr r2, [sp, #" place "]\n\tstrb r0, [r1, r2]\n\t"
#define FIRST     "strb r0, [r1]\n\t"
#define FILTERS(name, add, sign)                                                                   \
	TINYML_ASSEMBLY static void name(                                                          \
		const int32_t *filters TINYML_UNSEEN, const int32_t *halves TINYML_UNSEEN,         \
		const int32_t *end TINYML_UNSEEN, struct outputs *to TINYML_UNSEEN)                \
	{                                                                                          \
		__asm__ volatile(                                                                  \
			".syntax unified\n\t"                                                      \
			"push {r1-r7, lr}\n\t"                                                     \
			"mov r4, r8\n\t"                                                           \
			"mov r5, r9\n\t"                                                           \
			"mov r6, r10\n\t"                                                          \
			"mov r7, r11\n\t"                                                          \
			"push {r4-r7}\n\t"                                                         \
			"ldm r3!, {r4, r5}\n\t"                                                    \
			"mov r11, r4\n\t"                                                          \
			"adds r5, #255\n\t" /* twice 128, as uint8 */                              \
			"adds r5, #1\n\t"                                                          \
			"mov r10, r5\n\t"                                                          \
			"ldm r3!, {r4-r7}\n\t"                                                     \
			"push {r4-r7}\n\t" /* places of windows 1 to 3, the end */                 \
			"1:\n\t"                                                                   \
			"ldr r1, [sp, #32]\n\t"                                                    \
			"ldr r2, [sp, #36]\n\t"                                                    \
			"bl " CONV_HALVES_DOT "\n\t"                                              \
			"ldm r0!, {r3, r7}\n\t"                                                    \
			"mov r12, r0\n\t"                                                          \
			"lsrs r6, r3, #17\n\t"                                                     \
			"lsrs r3, r3, #1\n\t"                                                      \
			"uxth r3, r3\n\t"                                                          \
			OUTPUT(add, sign, "r5", AT("8"))                                           \
			OUTPUT(add, sign, "r9", AT("4"))                                           \
			OUTPUT(add, sign, "r4", AT("0"))                                           \
			OUTPUT(add, sign, "r8", FIRST)                                             \
			"ldr r0, [sp, #12]\n\t"                                                    \
			"adds r1, #1\n\t"                                                          \
			"mov r11, r1\n\t"                                                          \
			"cmp r1, r0\n\t"                                                           \
			"mov r0, r12\n\t"                                                          \
			"beq 3f\n\t"                                                               \
			"b 1b\n\t"                                                                 \
			"3:\n\t"                                                                   \
			"add sp, #16\n\t"                                                          \
			"pop {r4-r7}\n\t"                                                          \
			"mov r8, r4\n\t"                                                           \
			"mov r9, r5\n\t"                                                           \
			"mov r10, r6\n\t"                                                          \
			"mov r11, r7\n\t"                                                          \
			"pop {r1-r7, pc}\n\t");                                                    \
	}
/* clang-format on */
FILTERS(conv_halves_filters_once, "adds", "")
FILTERS(conv_halves_filters_twice, "adcs", TINYML_FROM_ZERO_ARMV6M)
#undef FILTERS
#undef FIRST
#undef AT
#undef OUTPUT

/* The sums of one filter; returns what follows its weights. */
TINYML_ASSEMBLY static const int32_t *conv_halves_dot_filter(const int32_t *filter TINYML_UNSEEN,
							     const int32_t *halves TINYML_UNSEEN,
							     const int32_t *end TINYML_UNSEEN,
							     int32_t *sums TINYML_UNSEEN)
{
	/* clang-format off */
	__asm__ volatile(
		".syntax unified\n\t"
		"push {r3-r7, lr}\n\t"
		"mov r4, r8\n\t"
		"mov r5, r9\n\t"
		"push {r4, r5}\n\t"
		"bl " CONV_HALVES_DOT "\n\t"
		"mov r1, r8\n\t"
		"mov r2, r4\n\t"
		"mov r3, r9\n\t"
		"mov r4, r5\n\t"
		"pop {r5-r7}\n\t"
		"mov r8, r5\n\t"
		"mov r9, r6\n\t"
		"stm r7!, {r1-r4}\n\t"
		"pop {r4-r7, pc}\n\t");
	/* clang-format on */
}

#endif /* TINYML_CONV_HALVES_ARMV6M_H_ */
