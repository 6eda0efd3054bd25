/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* RNN, GRU and LSTM on int8 in plain C. */

#include <stdint.h>
#include <string.h>

#include <tinyml/fixed_point.h>
#include <tinyml/recurrent_s8.h>

typedef int8_t recurrent_run_element;

static inline int32_t recurrent_run_padded(int32_t count)
{
	return (count + 3) & ~3;
}

static inline int32_t recurrent_run_updates(int32_t hidden)
{
	return hidden;
}

static inline int32_t recurrent_run_place(int32_t i)
{
	return i;
}

static inline void recurrent_run_take(int8_t *to, const int8_t *x,
				      const struct tinyml_recurrent_s8 *p)
{
	memcpy(to, x, (size_t)p->inputs);
}

static inline void recurrent_run_give(int8_t *y, const int8_t *h, int32_t count)
{
	memcpy(y, h, (size_t)count);
}

static inline int32_t recurrent_run_saturate8(int32_t x)
{
	return tinyml_clamp(x, INT8_MIN, INT8_MAX);
}

/* Nothing else is the same in every step. */
struct own {
	char none;
};

static inline void recurrent_run_prepare(struct own *own, const struct tinyml_recurrent_s8 *p,
					 const recurrent_run_element *x)
{
	(void)own;
	(void)p;
	(void)x;
}

typedef const int8_t *recurrent_group_extent; /* the end */

static inline recurrent_group_extent recurrent_group_reach(const int8_t *copy, int32_t count)
{
	return copy + count;
}

#include "recurrent_scaled_s8.h"

static inline int32_t recurrent_cells_saturate16(int32_t x)
{
	return tinyml_clamp(x, INT16_MIN, INT16_MAX);
}

static inline int32_t recurrent_cells_from_30(int32_t x)
{
	return recurrent_cells_saturate16(x >> 15);
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

static inline void recurrent_cells_multiply(struct group *group, int32_t *sums, int32_t groups)
{
	for (; groups > 0; groups--, sums += ROWS) {
		group->w = recurrent_s8_four(group->w, group->x, group->x_extent, group->from_x);
		group->r = recurrent_s8_four(group->r, group->h, group->h_extent, sums);
		recurrent_scaled_sums(group, sums);
	}
}

static inline int32_t recurrent_cells_gate(int32_t sum)
{
	return recurrent_cells_saturate16(sum >> 3);
}

/* What the functions of gates need: the middle of the table. */
struct recurrent_cells_curves {
	const int16_t *middle;
};

static inline struct recurrent_cells_curves recurrent_cells_curves(void)
{
	return (struct recurrent_cells_curves){&tinyml_tanh_s16[256]};
}

/* Between two elements of the table, times 2^bits; x is in units of 2^-bits. */
static inline int32_t recurrent_s8_curve(const int16_t *middle, int32_t x, int32_t bits)
{
	const int16_t *at = &middle[x >> bits];
	const int32_t share = x & ((1 << bits) - 1);

	return at[0] * (1 << bits) + (at[1] - at[0]) * share;
}

static inline int32_t recurrent_cells_tanh(const struct recurrent_cells_curves *curves, int32_t x)
{
	return (recurrent_s8_curve(curves->middle, x, 7) + (1 << 6)) >> 7;
}

static inline int32_t recurrent_cells_logistic(const struct recurrent_cells_curves *curves,
					       int32_t x)
{
	return (recurrent_s8_curve(curves->middle, x, 8) + (1 << 7) + (1 << 23)) >> 9;
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
