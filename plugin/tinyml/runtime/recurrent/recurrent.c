/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>
#include <string.h>

#include <tinyml/recurrent.h>

void tinyml_start_gates(float *y, const struct tinyml_recurrent *p, int32_t first, int32_t rows,
			int32_t gates)
{
	for (int32_t i = 0; i < rows; i++) {
		y[i] = p->b != NULL ? p->b[first + i] + p->b[gates + first + i] : 0.0f;
	}
}

static void recurrent_start(float *state, const float *initial, int32_t count)
{
	if (initial == NULL) {
		memset(state, 0, (size_t)count * sizeof(*state));
	} else if (initial != state) {
		memcpy(state, initial, (size_t)count * sizeof(*state));
	}
}

void tinyml_recurrent_run(const struct tinyml_recurrent *p, tinyml_cell cell)
{
	const size_t row = (size_t)p->hidden * sizeof(float);

	recurrent_start(p->h_last, p->h0, p->batches * p->hidden);
	if (p->c_last != NULL) {
		recurrent_start(p->c_last, p->c0, p->batches * p->hidden);
	}
	for (int32_t n = 0; n < p->batches; n++) {
		float *h = &p->h_last[n * p->hidden];
		float *c = p->c_last != NULL ? &p->c_last[n * p->hidden] : NULL;
		int32_t length = p->lengths != NULL ? p->lengths[n] : p->steps;

		length = length > p->steps ? p->steps : length;
		if (length <= 0) { /* as in onnxruntime: no initial state either */
			memset(h, 0, row);
			if (c != NULL) {
				memset(c, 0, row);
			}
		}
		for (int32_t s = 0; s < p->steps; s++) {
			const int32_t t = p->reverse && s < length ? length - 1 - s : s;

			if (s < length) {
				cell(p, &p->x[(t * p->batches + n) * p->inputs], h, c);
			}
			if (p->y != NULL) {
				float *y = &p->y[(t * p->batches + n) * p->hidden];

				if (s < length) {
					memcpy(y, h, row);
				} else {
					memset(y, 0, row);
				}
			}
		}
	}
}
