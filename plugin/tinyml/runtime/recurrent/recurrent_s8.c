/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* RNN, GRU and LSTM on int8 in plain C. */

#include <stdint.h>

#include <tinyml/fixed_point.h>

#include "recurrent_scaled_s8.h"

typedef int8_t recurrent_cells_element;

static inline int32_t recurrent_cells_padded(int32_t count)
{
	return (count + 3) & ~3;
}

static inline int32_t recurrent_cells_saturate16(int32_t x)
{
	return tinyml_clamp(x, INT16_MIN, INT16_MAX);
}

static inline int32_t recurrent_cells_saturate8(int32_t x)
{
	return tinyml_clamp(x, INT8_MIN, INT8_MAX);
}

static inline const int8_t *recurrent_s8_four(const int8_t *w, const int8_t *x, const int8_t *end,
					      int32_t sums[ROWS])
{
	int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;

	for (; x != end; x += 4, w += 16) {
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
	return w;
}

static inline void recurrent_cells_multiply(struct group *group)
{
	group->w = recurrent_s8_four(group->w, group->x, group->x_end, group->from_x);
	group->r = recurrent_s8_four(group->r, group->h, group->h_end, group->from_h);
	recurrent_scaled_gates(group);
}

#include "recurrent_cells_s8.h"

void tinyml_rnn_s8(const struct tinyml_recurrent_s8 *p, const struct tinyml_recurrent_tensors *t)
{
	recurrent_run_all(p, t, false, recurrent_cells_step_rnn);
}

void tinyml_gru_s8(const struct tinyml_recurrent_s8 *p, const struct tinyml_recurrent_tensors *t)
{
	recurrent_run_all(p, t, true,
			  p->again != NULL ? recurrent_cells_step_gru_linear
					   : recurrent_cells_step_gru);
}

void tinyml_recurrent_lstm_s8(const struct tinyml_recurrent_s8 *p,
			      const struct tinyml_recurrent_tensors *t)
{
	recurrent_run_all(p, t, false, recurrent_cells_step_lstm);
}
