/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include <tinyml/block_weights.h>

#include "block_sums_f32.h"
#include "steps_s4.h"

/* Of `count` elements, each block in words of its own. */
static int32_t row_f32_s4_words(int32_t count)
{
	return (count + TINYML_STEPS_WORD - 1) / TINYML_STEPS_WORD;
}

void tinyml_row_f32_s4(const struct tinyml_steps_s4 *p, int32_t row, float *y)
{
	const int32_t whole = p->inputs / p->block, rest = p->inputs - whole * p->block;
	const int32_t words = whole * row_f32_s4_words(p->block) + row_f32_s4_words(rest);
	const int32_t first = row * (whole + (rest != 0));
	const uint32_t *w = &p->weights[row * words];
	const float *scale = &p->scales[first];
	const uint8_t *zero = p->zeros != NULL ? &p->zeros[first] : NULL;

	for (int32_t at = 0; at < p->inputs;) {
		const int32_t end = tinyml_block_end(at, p->block, p->inputs);
		const float centre = zero != NULL ? *zero++ : 8.0f;

		for (int32_t i = 0; i < end - at; i++) {
			const float step = tinyml_steps_s4_element(w[i / TINYML_STEPS_WORD],
								   i % TINYML_STEPS_WORD);

			*y++ = (step - centre) * *scale;
		}
		w += row_f32_s4_words(end - at);
		scale++;
		at = end;
	}
}
