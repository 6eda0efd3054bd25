/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The sum that finds damage in images. */

#include "program.h"

#define SUM_WORDS 8 /* at a time */

/* A word sum that notices exchanged words too: ror(sum, 1) + word. */
static uint32_t word_sum_word(uint32_t sum, uint32_t word)
{
	return ((sum >> 1) | (sum << 31)) + word;
}

/* Eight words at a time, up to `end`. */
#if defined(__thumb2__)

/* An instruction a word, and one that loads eight; compilers need two a word and more. */
static uint32_t word_sum_words(uint32_t sum, const uint32_t *at, const uint32_t *end)
{
	while (at != end) {
		/* clang-format off */
		__asm__ volatile(
			"ldmia %[at]!, {r3-r6, r8, r9, r12, lr}\n\t"
			"add %[sum], r3, %[sum], ror #1\n\t"
			"add %[sum], r4, %[sum], ror #1\n\t"
			"add %[sum], r5, %[sum], ror #1\n\t"
			"add %[sum], r6, %[sum], ror #1\n\t"
			"add %[sum], r8, %[sum], ror #1\n\t"
			"add %[sum], r9, %[sum], ror #1\n\t"
			"add %[sum], r12, %[sum], ror #1\n\t"
			"add %[sum], lr, %[sum], ror #1\n\t"
			: [sum] "+r"(sum), [at] "+r"(at)
			:
			: "r3", "r4", "r5", "r6", "r8", "r9", "r12", "lr", "memory");
		/* clang-format on */
	}
	return sum;
}

#else

static uint32_t word_sum_words(uint32_t sum, const uint32_t *at, const uint32_t *end)
{
	for (; at != end; at += SUM_WORDS) {
		for (uint32_t i = 0; i < SUM_WORDS; i++) {
			sum = word_sum_word(sum, at[i]);
		}
	}
	return sum;
}

#endif

uint32_t tinyml_word_sum(uint32_t sum, const uint8_t *start, const uint8_t *end)
{
	const uint32_t *at = (const void *)start;
	const uint32_t *const last = (const void *)end;
	const uint32_t *const whole = last - (last - at) % SUM_WORDS;

	for (sum = word_sum_words(sum, at, whole), at = whole; at != last; at++) {
		sum = word_sum_word(sum, *at);
	}
	return sum;
}
