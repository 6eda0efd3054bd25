/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/block_weights.h>

#include "../weighted/block_sums_f32.h"
#include "../weighted/steps_s4.h"

#define DENSE_F32_S4_ZERO 8.0f

/* The last elements of a block, fewer than a word has. */
static inline float dense_f32_s4_rest(const float *x, uint32_t word, uint32_t count)
{
	float sum = 0.0f;

	for (uint32_t i = 0; i < count; i++) {
		sum += x[i] * tinyml_steps_s4_element(word, (int32_t)i);
	}
	return sum;
}

void tinyml_dense_f32_s4(const struct tinyml_dense_f32_s4 *p, const float *x, float *y, float *sums)
{
	const uint32_t inputs = (uint32_t)p->steps.inputs, block = (uint32_t)p->steps.block;
	const uint32_t blocks = (inputs + block - 1) / block;

	for (int32_t row = 0; row < p->rows; row++, x += inputs) {
		const uint32_t *w = p->steps.weights;
		const float *scale = p->steps.scales;
		const uint8_t *zero = p->steps.zeros;

		tinyml_block_sums(x, p->steps.inputs, p->steps.block, sums);
		for (int32_t o = 0; o < p->outputs; o++) {
			tinyml_steps_s4_sum total = TINYML_STEPS_S4_NOTHING;
			float v = p->bias != NULL ? p->bias[o] : 0.0f;
			const float *in = x;
			uint32_t count = block;

			for (uint32_t b = 0; b < blocks; b++) {
				const float step = *scale++;
				uint32_t words;

				if (b + 1 == blocks) {
					count = inputs - b * block;
				}
				words = count / TINYML_STEPS_WORD;
				total = tinyml_steps_s4_times(
					total, tinyml_steps_s4_words(in, w, words), step);
				in += words * TINYML_STEPS_WORD;
				w += words;
				if (count % TINYML_STEPS_WORD != 0) {
					const uint32_t rest = count % TINYML_STEPS_WORD;

					v += dense_f32_s4_rest(in, *w++, rest) * step;
					in += rest;
				}
				v -= (zero != NULL ? *zero++ : DENSE_F32_S4_ZERO) * sums[b] * step;
			}
			v += tinyml_steps_s4_total(total);
			*y++ = v < p->out_min ? p->out_min : v > p->out_max ? p->out_max : v;
		}
	}
}
