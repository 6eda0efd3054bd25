/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* RNN, GRU and LSTM on int8 in plain C. */

#include <stdint.h>

#include <tinyml/fixed_point.h>

#define recurrent_cells_group_bytes 4
typedef int8_t recurrent_cells_element;

static inline int32_t recurrent_cells_padded(int32_t count)
{
	return (count + 3) & ~3;
}

static inline int32_t recurrent_cells_place(int32_t i)
{
	return i;
}

static inline int32_t recurrent_cells_saturate(int32_t x)
{
	return tinyml_clamp(x, INT16_MIN, INT16_MAX);
}

static inline void recurrent_cells_four(const int8_t *w, const int8_t *x, int32_t count,
					int32_t sums[4])
{
	int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;

	for (const int8_t *end = x + count; x != end; x += 4, w += 16) {
		for (int32_t i = 0; i < 4; i++) {
			const int32_t value = x[i];

			s0 += w[i] * value;
			s1 += w[4 + i] * value;
			s2 += w[8 + i] * value;
			s3 += w[12 + i] * value;
		}
	}
	sums[0] = s0;
	sums[1] = s1;
	sums[2] = s2;
	sums[3] = s3;
}

#include "recurrent_cells_s8.h"

void tinyml_rnn_s8(const struct tinyml_recurrent_s8 *p, const struct tinyml_recurrent_tensors *t)
{
	recurrent_cells_run(p, t, false, recurrent_cells_step_rnn);
}

void tinyml_gru_s8(const struct tinyml_recurrent_s8 *p, const struct tinyml_recurrent_tensors *t)
{
	recurrent_cells_run(p, t, true,
			    p->again != NULL ? recurrent_cells_step_gru_linear
					     : recurrent_cells_step_gru);
}

void tinyml_recurrent_lstm_s8(const struct tinyml_recurrent_s8 *p,
			      const struct tinyml_recurrent_tensors *t)
{
	recurrent_cells_run(p, t, false, recurrent_cells_step_lstm);
}
