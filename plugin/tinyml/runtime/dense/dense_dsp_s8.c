/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Dense layers with DSP instructions, in pairs of int16. */

#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include "../weighted/dsp_s8.h"

#ifdef __ARM_FEATURE_UNALIGNED

/* In assembly, because compilers need a fifth more instructions for this loop. */
static inline const uint32_t *dense_stream_dot_four(const uint32_t *filters, const int8_t *x,
						    int32_t words, int32_t sums[4])
{
	const int8_t *end = x + 4 * words;
	int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
	uint32_t a, b, even, odd, w;

	/* clang-format off */
#define TWO_FILTERS(first, second)                                                                 \
	"ldrd %[a], %[b], [%[filters]], #8\n\t"                                                    \
	"sxtb16 %[w], %[a]\n\t"                                                                    \
	"smlad %[" first "], %[w], %[even], %[" first "]\n\t"                                      \
	"sxtb16 %[w], %[a], ror #8\n\t"                                                            \
	"smlad %[" first "], %[w], %[odd], %[" first "]\n\t"                                       \
	"sxtb16 %[w], %[b]\n\t"                                                                    \
	"smlad %[" second "], %[w], %[even], %[" second "]\n\t"                                    \
	"sxtb16 %[w], %[b], ror #8\n\t"                                                            \
	"smlad %[" second "], %[w], %[odd], %[" second "]\n\t"

	__asm__ volatile(
		"1:\n\t"
		"ldr %[odd], [%[x]], #4\n\t"
		"sxtb16 %[even], %[odd]\n\t"
		"sxtb16 %[odd], %[odd], ror #8\n\t"
		TWO_FILTERS("s0", "s1")
		TWO_FILTERS("s2", "s3")
		"cmp %[x], %[end]\n\t"
		"bne 1b\n\t"
		: [filters] "+r"(filters), [x] "+r"(x), [s0] "+r"(s0), [s1] "+r"(s1),
		  [s2] "+r"(s2), [s3] "+r"(s3), [a] "=&r"(a), [b] "=&r"(b), [even] "=&r"(even),
		  [odd] "=&r"(odd), [w] "=&r"(w)
		: [end] "r"(end)
		: "memory", "cc");
	/* clang-format on */
#undef TWO_FILTERS
	sums[0] = s0;
	sums[1] = s1;
	sums[2] = s2;
	sums[3] = s3;
	return filters;
}

#else /* rows can start at any address, and unaligned loads may trap */

static inline const uint32_t *dense_stream_dot_four(const uint32_t *filters, const int8_t *x,
						    int32_t words, int32_t sums[4])
{
	for (const int8_t *end = x + 4 * words; x != end; x += 4) {
		const uint32_t word = tinyml_load_word(x);
		const int16x2_t even = tinyml_even_bytes(word), odd = tinyml_odd_bytes(word);

		for (int32_t i = 0; i < 4; i++, filters++) {
			sums[i] = __smlad(tinyml_even_bytes(*filters), even, sums[i]);
			sums[i] = __smlad(tinyml_odd_bytes(*filters), odd, sums[i]);
		}
	}
	return filters;
}

#endif

static inline const uint32_t *dense_stream_dot_one(const uint32_t *filter, const int8_t *x,
						   int32_t words, int32_t *sum)
{
	int32_t s = *sum;

	for (const uint32_t *end = filter + words; filter != end; x += 4) {
		const uint32_t word = tinyml_load_word(x), w = *filter++;

		s = __smlad(tinyml_even_bytes(word), tinyml_even_bytes(w), s);
		s = __smlad(tinyml_odd_bytes(word), tinyml_odd_bytes(w), s);
	}
	*sum = s;
	return filter;
}

static inline int8_t dense_stream_rescale(int32_t sum, int32_t factor, int32_t exponent,
					  const struct tinyml_output *to)
{
	const int32_t q = to->sign == 0
				  ? tinyml_output_dsp(sum, factor, exponent, true, to->twice_zero)
				  : tinyml_output_dsp(sum, factor, exponent, false, to->twice_zero);

	return (int8_t)(to->narrow ? tinyml_clamp(q, to->low, to->high) : q);
}

#include "dense_stream_s8.h"

void tinyml_dense_dsp_s8(const struct tinyml_dense_stream_s8 *p, const int8_t *x, int8_t *y)
{
	dense_stream_multiply(p, x, y);
}

#endif /* TINYML_CORE_DSP */
