/* SPDX-License-Identifier: Apache-2.0 */

/* Dense layers with DSP instructions: an input meets four filters at a time. */

#include <stdbool.h>

#include <tinyml/dense.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include "dsp_s8.h"

/* sums[i] += filter i · x over `words` words; the four filters take turns, a word each. Compilers
 * need a fifth more instructions for this loop. Returns what comes behind the filters.
 */
static inline const uint32_t *dot_4x1(const uint32_t *filters, const int8_t *x, int32_t words,
				      int32_t sums[4])
{
	const int8_t *end = x + 4 * words;
	int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
	uint32_t a, b, even, odd, w;

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

	__asm__ volatile("1:\n\t"
			 "ldr %[odd], [%[x]], #4\n\t"
			 "sxtb16 %[even], %[odd]\n\t"
			 "sxtb16 %[odd], %[odd], ror #8\n\t" TWO_FILTERS("s0", "s1")
				 TWO_FILTERS("s2", "s3") "cmp %[x], %[end]\n\t"
							 "bne 1b\n\t"
			 : [filters] "+r"(filters), [x] "+r"(x), [s0] "+r"(s0), [s1] "+r"(s1),
			   [s2] "+r"(s2), [s3] "+r"(s3), [a] "=&r"(a), [b] "=&r"(b),
			   [even] "=&r"(even), [odd] "=&r"(odd), [w] "=&r"(w)
			 : [end] "r"(end)
			 : "memory", "cc");
#undef TWO_FILTERS
	sums[0] = s0;
	sums[1] = s1;
	sums[2] = s2;
	sums[3] = s3;
	return filters;
}

/* The same for one filter. */
static inline const uint32_t *dot_1x1(const uint32_t *filter, const int8_t *x, int32_t words,
				      int32_t *sum)
{
	for (const uint32_t *end = filter + words; filter != end; x += 4) {
		const uint32_t word = tinyml_load_word(x), w = *filter++;

		*sum = __smlad(tinyml_even_bytes(word), tinyml_even_bytes(w), *sum);
		*sum = __smlad(tinyml_odd_bytes(word), tinyml_odd_bytes(w), *sum);
	}
	return filter;
}

static int32_t sum_of(const int8_t *x, int32_t count)
{
	int32_t sum = 0;

	for (int32_t i = 0; i < count; i++) {
		sum += x[i];
	}
	return sum;
}

void tinyml_dense_dsp_s8(const struct tinyml_dense_s8 *p, const int8_t *x, int8_t *y)
{
	const struct tinyml_dense_s8 q = *p;
	const bool narrow = q.out_min > INT8_MIN || q.out_max < INT8_MAX;
	const int32_t whole = q.inputs / 4, rest = q.inputs % 4;

	for (int32_t row = 0; row < q.rows; row++, x += q.inputs) {
		const int32_t shared = q.weight_zero != 0 ? q.weight_zero * sum_of(x, q.inputs) : 0;
		const uint32_t *w = (const uint32_t *)(const void *)q.weights;
		int8_t last[4] = {0};

		memcpy(last, &x[4 * whole], (size_t)rest);
		for (int32_t left = q.outputs; left > 0;) {
			const int32_t count = left >= 4 ? 4 : 1;
			int32_t sums[4] = {0};

			for (int32_t i = 0; i < count; i++) {
				sums[i] = (int32_t)*w++ - shared;
			}
			if (count == 4) {
				if (whole > 0) {
					w = dot_4x1(w, x, whole, sums);
				}
				if (rest > 0) {
					w = dot_4x1(w, last, 1, sums);
				}
			} else {
				w = dot_1x1(w, x, whole, sums);
				w = dot_1x1(w, last, rest > 0, sums);
			}
			for (int32_t i = 0; i < count; i++) {
				const int32_t factor = (int32_t)w[i];
				const int32_t exponent = ((const int8_t *)&w[count])[i];
				int32_t output;

				if (q.round_once) {
					output = tinyml_output_dsp(sums[i], factor, exponent, true,
								   2 * q.out_zero + 1);
				} else {
					output = tinyml_output_dsp(sums[i], factor, exponent, false,
								   2 * q.out_zero + 1);
				}
				if (narrow) {
					output = tinyml_clamp(output, q.out_min, q.out_max);
				}
				*y++ = (int8_t)output;
			}
			w += count + 1;
			left -= count;
		}
	}
}

#endif /* TINYML_CORE_DSP */
