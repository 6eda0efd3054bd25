/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions with DSP instructions: two windows by two filters at a time, in pairs of int16. */

#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include "../weighted/dsp_s8.h"

#define WINDOWS   2
#define WORD_STEP 4 /* even bytes of both columns, then odd ones */

static inline void conv_columns_put_word(uint32_t *to, uint32_t word)
{
	to[0] = (uint32_t)tinyml_even_bytes(word);
	to[2] = (uint32_t)tinyml_odd_bytes(word);
}

/* In assembly, because compilers need a fifth more instructions for this loop, in which a model
 * spends most of its time. */
static inline const uint32_t *conv_two_filters_dot(const uint32_t *filters, const uint32_t *end,
						   const uint32_t *columns,
						   int32_t sums[2 * WINDOWS])
{
	int32_t s00 = sums[0], s01 = sums[1], s10 = sums[2], s11 = sums[3];
	uint32_t a, b, x0, x1, w;

	/* clang-format off */
#define FOUR_ELEMENTS                                                                              \
	"ldrd %[a], %[b], [%[filters]], #8\n\t"                                                    \
	"ldrd %[x0], %[x1], [%[columns]], #8\n\t"                                                  \
	"sxtb16 %[w], %[a]\n\t"                                                                    \
	"smlad %[s00], %[w], %[x0], %[s00]\n\t"                                                    \
	"smlad %[s01], %[w], %[x1], %[s01]\n\t"                                                    \
	"sxtb16 %[w], %[b]\n\t"                                                                    \
	"smlad %[s10], %[w], %[x0], %[s10]\n\t"                                                    \
	"smlad %[s11], %[w], %[x1], %[s11]\n\t"                                                    \
	"ldrd %[x0], %[x1], [%[columns]], #8\n\t"                                                  \
	"sxtb16 %[w], %[a], ror #8\n\t"                                                            \
	"smlad %[s00], %[w], %[x0], %[s00]\n\t"                                                    \
	"smlad %[s01], %[w], %[x1], %[s01]\n\t"                                                    \
	"sxtb16 %[w], %[b], ror #8\n\t"                                                            \
	"smlad %[s10], %[w], %[x0], %[s10]\n\t"                                                    \
	"smlad %[s11], %[w], %[x1], %[s11]\n\t"

	__asm__ volatile(
		"sub %[w], %[end], %[filters]\n\t"
		"lsls %[w], %[w], #28\n\t" /* odd number of words: enter in the middle */
		"bmi 2f\n"
		"1:\n\t"
		FOUR_ELEMENTS
		"2:\n\t"
		FOUR_ELEMENTS
		"cmp %[filters], %[end]\n\t"
		"bne 1b\n\t"
		: [filters] "+r"(filters), [columns] "+r"(columns), [s00] "+r"(s00),
		  [s01] "+r"(s01), [s10] "+r"(s10), [s11] "+r"(s11), [a] "=&r"(a), [b] "=&r"(b),
		  [x0] "=&r"(x0), [x1] "=&r"(x1), [w] "=&r"(w)
		: [end] "r"(end)
		: "memory", "cc");
	/* clang-format on */
#undef FOUR_ELEMENTS
	sums[0] = s00;
	sums[1] = s01;
	sums[2] = s10;
	sums[3] = s11;
	return filters;
}

static int32_t conv_two_filters_sum_column(const uint32_t *column, int32_t count)
{
	int32_t sum = 0;

	for (; count > 0; count -= 2, column += 2) {
		sum = __smlad((int16x2_t)*column, 0x10001, sum);
	}
	return sum;
}

static inline void conv_two_filters_rescale(int32_t sums[2 * WINDOWS], const int32_t factor[2],
					    const int8_t exponent[2],
					    const struct tinyml_output *to)
{
	const int32_t f0 = factor[0], f1 = factor[1], e0 = exponent[0], e1 = exponent[1];

	if (to->sign == 0) {
		sums[0] = tinyml_output_dsp(sums[0], f0, e0, true, to->twice_zero);
		sums[1] = tinyml_output_dsp(sums[1], f0, e0, true, to->twice_zero);
		sums[2] = tinyml_output_dsp(sums[2], f1, e1, true, to->twice_zero);
		sums[3] = tinyml_output_dsp(sums[3], f1, e1, true, to->twice_zero);
	} else {
		sums[0] = tinyml_output_dsp(sums[0], f0, e0, false, to->twice_zero);
		sums[1] = tinyml_output_dsp(sums[1], f0, e0, false, to->twice_zero);
		sums[2] = tinyml_output_dsp(sums[2], f1, e1, false, to->twice_zero);
		sums[3] = tinyml_output_dsp(sums[3], f1, e1, false, to->twice_zero);
	}
	if (to->narrow) {
		sums[0] = tinyml_clamp(sums[0], to->low, to->high);
		sums[1] = tinyml_clamp(sums[1], to->low, to->high);
		sums[2] = tinyml_clamp(sums[2], to->low, to->high);
		sums[3] = tinyml_clamp(sums[3], to->low, to->high);
	}
}

#include "conv_two_filters_s8.h"

#include "conv_stream_s8.h"

void tinyml_conv_dsp_s8(const struct tinyml_conv_stream_s8 *p, const int8_t *x, int8_t *y,
			void *scratch)
{
	conv_stream_convolve(p, x, y, scratch);
}

#endif /* TINYML_CORE_DSP */
