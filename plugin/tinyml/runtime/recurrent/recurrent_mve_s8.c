/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* RNN, GRU and LSTM on int8 with Helium: sixteen elements of four rows at a time. */

#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include <arm_acle.h>
#include <arm_mve.h>
#include <stdint.h>

#include "recurrent_scaled_s8.h"

typedef int8_t recurrent_cells_element;

static inline int32_t recurrent_cells_padded(int32_t count)
{
	return (count + 15) & ~15;
}

static inline int32_t recurrent_cells_saturate16(int32_t x)
{
	return __ssat(x, 16);
}

static inline int32_t recurrent_cells_saturate8(int32_t x)
{
	return __ssat(x, 8);
}

static inline const int8_t *recurrent_mve_four(const int8_t *w, const int8_t *x, const int8_t *end,
					       int32_t sums[ROWS])
{
	int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;

	for (int32_t left = (int32_t)(end - x) / 16; left > 0; left--, x += 16, w += 64) {
		const int8x16_t elements = vldrbq_s8(x);

		s0 = vmladavaq_s8(s0, elements, vldrbq_s8(w));
		s1 = vmladavaq_s8(s1, elements, vldrbq_s8(w + 16));
		s2 = vmladavaq_s8(s2, elements, vldrbq_s8(w + 32));
		s3 = vmladavaq_s8(s3, elements, vldrbq_s8(w + 48));
	}
	sums[0] = s0;
	sums[1] = s1;
	sums[2] = s2;
	sums[3] = s3;
	return w;
}

static inline void recurrent_cells_multiply(struct group *group)
{
	group->w = recurrent_mve_four(group->w, group->x, group->x_end, group->from_x);
	group->r = recurrent_mve_four(group->r, group->h, group->h_end, group->from_h);
	recurrent_scaled_gates(group);
}

#include "recurrent_cells_s8.h"

void tinyml_rnn_mve_s8(const struct tinyml_recurrent_s8 *p,
		       const struct tinyml_recurrent_tensors *t)
{
	recurrent_run_all(p, t, false, recurrent_cells_step_rnn);
}

void tinyml_gru_mve_s8(const struct tinyml_recurrent_s8 *p,
		       const struct tinyml_recurrent_tensors *t)
{
	recurrent_run_all(p, t, true,
			  p->again != NULL ? recurrent_cells_step_gru_linear
					   : recurrent_cells_step_gru);
}

void tinyml_recurrent_lstm_mve_s8(const struct tinyml_recurrent_s8 *p,
				  const struct tinyml_recurrent_tensors *t)
{
	recurrent_run_all(p, t, false, recurrent_cells_step_lstm);
}

#endif /* TINYML_CORE_MVE */
