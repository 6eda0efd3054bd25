/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** The loops of conv_short_loops_dsp_s8.h in C, where words must not be loaded from any address. */

#ifndef TINYML_CONV_SHORT_LOOPS_S8_H_
#define TINYML_CONV_SHORT_LOOPS_S8_H_

#include <tinyml/conv.h>

#include "../weighted/dsp_s8.h"

/* A window times `size` filters; returns what follows their weights. */
static const int32_t *conv_short_loops_sums(const struct tinyml_conv_short_dsp_walk *walk,
					    const int8_t *x, int32_t size, int32_t *sums)
{
	const int32_t *weights = walk->filters + size;

	for (int32_t i = 0; i < size; i++) {
		sums[i] = walk->filters[i];
	}
	for (; weights != walk->end; x += walk->skip) {
		for (int32_t n = 0; n < walk->words; n++, x += 4) {
			const uint32_t word = tinyml_load_word(x);
			const int16x2_t even = tinyml_even_bytes(word);
			const int16x2_t odd = tinyml_odd_bytes(word);

			for (int32_t i = 0; i < size; i++, weights += 2) {
				sums[i] = __smlad(even, (int16x2_t)weights[0], sums[i]);
				sums[i] = __smlad(odd, (int16x2_t)weights[1], sums[i]);
			}
		}
	}
	return weights;
}

static inline void conv_short_loops_apply(struct tinyml_conv_short_dsp_walk *walk, int32_t size,
					  bool once)
{
	for (int32_t n = walk->blocks * (4 / size); n > 0; n--) {
		int32_t sums[4];
		const int32_t *factors = conv_short_loops_sums(walk, walk->x, size, sums);
		const int8_t *exponents = (const int8_t *)(factors + size);

		for (int32_t i = 0; i < size; i++) {
			walk->y[i] = (int8_t)tinyml_output_dsp(sums[i], factors[i], exponents[i],
							       once, walk->twice_zero);
		}
		walk->x += walk->step;
		walk->y += walk->out_step;
	}
}

#define LOOPS(name, size)                                                                          \
	void tinyml_conv_short_dsp_##name##_once(void *walk)                                       \
	{                                                                                          \
		conv_short_loops_apply(walk, size, true);                                          \
	}                                                                                          \
	void tinyml_conv_short_dsp_##name##_twice(void *walk)                                      \
	{                                                                                          \
		conv_short_loops_apply(walk, size, false);                                         \
	}
LOOPS(fours, 4)
LOOPS(twos, 2)
LOOPS(ones, 1)
#undef LOOPS

#endif /* TINYML_CONV_SHORT_LOOPS_S8_H_ */
