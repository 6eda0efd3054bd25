/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions in plain C: three windows by two filters at a time. */

#include <stdint.h>

#include "../weighted/assembly.h"

#define WINDOWS   3
#define WORD_STEP WINDOWS

static inline void conv_columns_put_word(uint32_t *to, uint32_t word)
{
	*to = word;
}

#if defined(__thumb__) && !defined(__thumb2__)

/* Armv6-M has eight registers that instructions reach, and multiplies in place: one window by two
 * filters just fits, without the moves that compilers need. Takes filters (r0), a column (r1), the
 * end of the filters (r2) and sums (r3): the first filter's, and WINDOWS words later the second's.
 */
_Static_assert(WINDOWS == 3, "assembly expects the words of the next filter 12 bytes on");
TINYML_ASSEMBLY static void conv_s8_dot_window(const int8_t *filters TINYML_UNSEEN,
					       const int8_t *x TINYML_UNSEEN,
					       const int8_t *end TINYML_UNSEEN,
					       int32_t *sums TINYML_UNSEEN)
{
	/* clang-format off */
#define STEP(i)                                                                                    \
	"movs r3, #" i "\n\t"                                                                      \
	"ldrsb r6, [r1, r3]\n\t"                                                                   \
	"ldrsb r7, [r0, r3]\n\t"                                                                   \
	"muls r7, r6, r7\n\t"                                                                      \
	"adds r4, r4, r7\n\t"                                                                      \
	"ldrsb r7, [r2, r3]\n\t"                                                                   \
	"muls r7, r6, r7\n\t"                                                                      \
	"adds r5, r5, r7\n\t"
	__asm__ volatile(
		".syntax unified\n\t"
		"push {r4-r7, lr}\n\t"
		"mov r12, r2\n\t"
		"mov lr, r3\n\t"
		"ldr r4, [r3]\n\t"
		"ldr r5, [r3, #12]\n\t"
		"adds r2, r0, #4\n\t"
		"1:\n\t"
		STEP("0")
		STEP("1")
		STEP("2")
		STEP("3")
		"adds r0, #8\n\t"
		"adds r2, #8\n\t"
		"adds r1, #12\n\t"
		"cmp r0, r12\n\t"
		"bne 1b\n\t"
		"mov r3, lr\n\t"
		"str r4, [r3]\n\t"
		"str r5, [r3, #12]\n\t"
		"pop {r4-r7, pc}\n\t");
	/* clang-format on */
#undef STEP
}

static inline const uint32_t *conv_two_filters_dot(const uint32_t *filters, const uint32_t *end,
						   const uint32_t *columns,
						   int32_t sums[2 * WINDOWS])
{
	for (int32_t i = 0; i < WINDOWS; i++) {
		conv_s8_dot_window((const int8_t *)filters, (const int8_t *)&columns[i],
				   (const int8_t *)end, &sums[i]);
	}
	return end;
}

#else

static inline const uint32_t *conv_two_filters_dot(const uint32_t *filters, const uint32_t *end,
						   const uint32_t *columns,
						   int32_t sums[2 * WINDOWS])
{
	const int8_t *w = (const int8_t *)filters, *x = (const int8_t *)columns;
	int32_t s00 = sums[0], s01 = sums[1], s02 = sums[2];
	int32_t s10 = sums[3], s11 = sums[4], s12 = sums[5];

	do {
#define STEP(i)                                                                                    \
	do {                                                                                       \
		const int32_t a = w[i], b = w[4 + (i)];                                            \
		int32_t value = x[i];                                                              \
		s00 += value * a;                                                                  \
		s10 += value * b;                                                                  \
		value = x[4 + (i)];                                                                \
		s01 += value * a;                                                                  \
		s11 += value * b;                                                                  \
		value = x[8 + (i)];                                                                \
		s02 += value * a;                                                                  \
		s12 += value * b;                                                                  \
	} while (0)
		STEP(0);
		STEP(1);
		STEP(2);
		STEP(3);
#undef STEP
		w += 8;
		x += 4 * WINDOWS;
	} while (w != (const int8_t *)end);
	sums[0] = s00;
	sums[1] = s01;
	sums[2] = s02;
	sums[3] = s10;
	sums[4] = s11;
	sums[5] = s12;
	return end;
}

#endif

static int32_t conv_two_filters_sum_column(const uint32_t *column, int32_t count)
{
	int32_t sum = 0;

	for (int32_t i = 0; i < count; i++) {
		sum += ((const int8_t *)&column[i / 4 * WORD_STEP])[i % 4];
	}
	return sum;
}

#include "../weighted/output_s8.h"

static inline void conv_two_filters_rescale(int32_t sums[2 * WINDOWS], const int32_t factor[2],
					    const int8_t exponent[2],
					    const struct tinyml_output *to)
{
	for (int32_t i = 0; i < 2; i++) {
		const int32_t multiplier = (int32_t)((uint32_t)factor[i] >> 1),
			      shift = ~exponent[i];
		int32_t *of_filter = &sums[i * WINDOWS];

		of_filter[0] = tinyml_output_s8(of_filter[0], multiplier, shift, to);
		of_filter[1] = tinyml_output_s8(of_filter[1], multiplier, shift, to);
		of_filter[2] = tinyml_output_s8(of_filter[2], multiplier, shift, to);
	}
}

#include "conv_two_filters_s8.h"

#include "conv_stream_s8.h"

void tinyml_conv_s8(const struct tinyml_conv_stream_s8 *p, const int8_t *x, int8_t *y,
		    void *scratch)
{
	conv_stream_convolve(p, x, y, scratch);
}
