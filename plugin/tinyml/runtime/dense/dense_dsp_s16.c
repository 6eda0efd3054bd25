/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Dense layers with int16 activations and DSP instructions: four filters at a time. */

#include <tinyml/conv_s16.h>
#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include "../weighted/dsp_s16.h"

void tinyml_dense_dsp_s16(const struct tinyml_dense_dsp_s16 *p, const int16_t *x, int16_t *y)
{
	const int32_t words = (p->inputs + 1) / 2;

	TINYML_ASSERT(TINYML_ALIGNED(p->weights, 4));
	for (int32_t row = 0; row < p->rows; row++, x += p->inputs) {
		const uint32_t *w = (const uint32_t *)p->weights;

		for (int32_t o = 0; o < p->outputs; o += 4) {
			const int32_t left = p->outputs - o, count = left < 4 ? left : 4;
			const int16_t *from = x;
			int32_t sums[4] = {0, 0, 0, 0};
			int32_t a = 0, b = 0, c = 0, d = 0;

			for (int32_t i = words; i > 0; i--, from += 2, w += 2) {
				/* Nothing is read behind the last input. */
				const bool odd = i == 1 && p->inputs % 2 != 0;
				const int16x2_t two = (int16x2_t)(odd ? tinyml_load_half(from)
								      : tinyml_load_word(from));

				a = __smlad(tinyml_even_bytes(w[0]), two, a);
				b = __smlad(tinyml_odd_bytes(w[0]), two, b);
				c = __smlad(tinyml_even_bytes(w[1]), two, c);
				d = __smlad(tinyml_odd_bytes(w[1]), two, d);
			}
			sums[0] = a;
			sums[1] = b;
			sums[2] = c;
			sums[3] = d;
			for (int32_t i = 0; i < count; i++) {
				*y++ = tinyml_output_s16(sums[i] + p->bias[o + i], p->factor[o + i],
							 p->shift[o + i], p->out_min, p->out_max);
			}
		}
	}
}

#endif /* TINYML_CORE_DSP */
