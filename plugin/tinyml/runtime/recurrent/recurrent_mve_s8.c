/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* RNN, GRU and LSTM on int8 with Helium: sixteen elements of four rows at a time; four cells in the
 * lanes of a vector. */

#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include <arm_mve.h>
#include <stdint.h>

#include <tinyml/recurrent_s8.h>

typedef int8_t recurrent_run_element;

static inline int32_t recurrent_run_padded(int32_t count)
{
	return (count + 15) & ~15;
}

static inline void recurrent_mve_copy(int8_t *to, const int8_t *from, int32_t count)
{
	for (; count > 0; count -= 16, from += 16, to += 16) {
		const mve_pred16_t some = vctp8q((uint32_t)count);

		vstrbq_p_s8(to, vldrbq_z_s8(from, some), some);
	}
}

static inline void recurrent_run_take(int8_t *to, const int8_t *x,
				      const struct tinyml_recurrent_s8 *p)
{
	recurrent_mve_copy(to, x, p->inputs);
}

static inline void recurrent_run_give(int8_t *y, const int8_t *h, int32_t count)
{
	recurrent_mve_copy(y, h, count);
}

static inline int32_t recurrent_run_saturate8(int32_t x)
{
	int32_t limited;

	__asm__("ssat %0, #8, %1" : "=r"(limited) : "r"(x));
	return limited;
}

/* Nothing else is the same in every step. */
struct own {
	char none;
};

static inline void recurrent_run_prepare(struct own *own, const struct tinyml_recurrent_s8 *p)
{
	(void)own;
	(void)p;
}

#include "recurrent_group_s8.h"

/* What a group adds to its gates. */
struct parts {
	int32x4_t from_x;
	int32x4_t from_h;
};

static inline int32x4_t recurrent_mve_four(const int8_t **weights, const int8_t *x,
					   const int8_t *end)
{
	const int8_t *w = *weights;
	int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
	int32x4_t sums = vdupq_n_s32(0);

	do { /* a copy has at least one vector */
		const int8x16_t elements = vldrbq_s8(x);

		s0 = vmladavaq_s8(s0, elements, vldrbq_s8(w));
		s1 = vmladavaq_s8(s1, elements, vldrbq_s8(w + 16));
		s2 = vmladavaq_s8(s2, elements, vldrbq_s8(w + 32));
		s3 = vmladavaq_s8(s3, elements, vldrbq_s8(w + 48));
		x += 16;
		w += 64;
	} while (x != end);
	*weights = w;
	sums = vsetq_lane_s32(s0, sums, 0);
	sums = vsetq_lane_s32(s1, sums, 1);
	sums = vsetq_lane_s32(s2, sums, 2);
	return vsetq_lane_s32(s3, sums, 3);
}

static inline struct parts recurrent_mve_multiply(struct group *group)
{
	const int32_t *rows = group->rows;
	const int32x4_t x = recurrent_mve_four(&group->w, group->x, group->x_end);
	const int32x4_t h = recurrent_mve_four(&group->r, group->h, group->h_end);
	struct parts parts;

	parts.from_x = vmulhq_s32(vshlq_r_s32(x, group->x_left), vldrwq_s32(rows + ROWS));
	parts.from_x = vaddq_s32(parts.from_x, vldrwq_s32(rows));
	parts.from_h = vmulhq_s32(vshlq_r_s32(h, group->h_left), vldrwq_s32(rows + 2 * ROWS));
	group->rows = rows + 3 * ROWS;
	return parts;
}

static inline int32x4_t recurrent_mve_saturate16(int32x4_t x)
{
	return vminq_s32(vmaxq_s32(x, vdupq_n_s32(INT16_MIN)), vdupq_n_s32(INT16_MAX));
}

static inline int32x4_t recurrent_mve_gates(struct group *group)
{
	const struct parts parts = recurrent_mve_multiply(group);

	return recurrent_mve_saturate16(vshrq_n_s32(vaddq_s32(parts.from_x, parts.from_h), 3));
}

static inline int32x4_t recurrent_mve_tanh(int32x4_t x)
{
	const int32x4_t place = vaddq_n_s32(x, 1 << 15);
	const uint32x4_t first = vreinterpretq_u32_s32(vshrq_n_s32(place, 7));
	const int32x4_t low = vldrhq_gather_shifted_offset_s32(tinyml_tanh_s16, first);
	const int32x4_t high = vldrhq_gather_shifted_offset_s32(tinyml_tanh_s16 + 1, first);
	const int32x4_t share = vandq_s32(place, vdupq_n_s32(127));

	return vaddq_s32(low, vrshrq_n_s32(vmulq_s32(vsubq_s32(high, low), share), 7));
}

static inline int32x4_t recurrent_mve_logistic(int32x4_t x)
{
	const int32x4_t place = vaddq_n_s32(x, 1 << 16);
	const uint32x4_t first = vreinterpretq_u32_s32(vshrq_n_s32(place, 8));
	const int32x4_t low = vldrhq_gather_shifted_offset_s32(tinyml_tanh_s16, first);
	const int32x4_t high = vldrhq_gather_shifted_offset_s32(tinyml_tanh_s16 + 1, first);
	const int32x4_t share = vandq_s32(place, vdupq_n_s32(255));
	const int32x4_t curve = vrshrq_n_s32(vmulq_s32(vsubq_s32(high, low), share), 8);

	return vhaddq_n_s32(vaddq_s32(low, curve), 1 << 15);
}

/* States in units of 2^-15 as int8. */
static inline void recurrent_mve_put(int8_t *y, const struct output *to, int32x4_t h,
				     mve_pred16_t some)
{
	h = vshlq_r_s32(vmlaq_n_s32(vdupq_n_s32(to->bias), h, to->factor), -to->shift);
	h = vminq_s32(vmaxq_s32(h, vdupq_n_s32(INT8_MIN)), vdupq_n_s32(INT8_MAX));
	vstrbq_p_s32(y, h, some);
}

static void recurrent_mve_step_rnn(struct run *run)
{
	const struct output to = run->to;
	struct group group = recurrent_group_first(run, run->h);

	for (int32_t j = 0; j < run->p->hidden; j += ROWS) {
		const mve_pred16_t some = vctp32q((uint32_t)(run->p->hidden - j));

		recurrent_mve_put(&run->next[j], &to,
				  recurrent_mve_tanh(recurrent_mve_gates(&group)), some);
	}
}

static void recurrent_mve_step_lstm(struct run *run)
{
	const struct output to = run->to;
	const int32_t bits = run->p->cell_bits;
	struct group group = recurrent_group_first(run, run->h);

	for (int32_t j = 0; j < run->p->hidden; j += ROWS) {
		const mve_pred16_t some = vctp32q((uint32_t)(run->p->hidden - j));
		const int32x4_t in = recurrent_mve_logistic(recurrent_mve_gates(&group));
		const int32x4_t out = recurrent_mve_logistic(recurrent_mve_gates(&group));
		const int32x4_t forget = recurrent_mve_logistic(recurrent_mve_gates(&group));
		const int32x4_t fresh = recurrent_mve_tanh(recurrent_mve_gates(&group));
		int32x4_t c = vmulq_s32(forget, vldrhq_z_s32(&run->c[j], some));

		c = vaddq_s32(c, vshlq_r_s32(vmulq_s32(in, fresh), -bits));
		c = recurrent_mve_saturate16(vrshrq_n_s32(c, 15));
		vstrhq_p_s32(&run->c[j], c, some);
		c = recurrent_mve_tanh(recurrent_mve_saturate16(vshlq_r_s32(c, bits - 3)));
		recurrent_mve_put(&run->next[j], &to, vrshrq_n_s32(vmulq_s32(out, c), 15), some);
	}
}

static inline void recurrent_mve_renew(const struct run *run, const struct output *to, int32_t j,
				       int32x4_t update, int32x4_t fresh)
{
	const mve_pred16_t some = vctp32q((uint32_t)(run->p->hidden - j));
	const int32x4_t old = vmulq_s32(update, vldrhq_z_s32(&run->c[j], some));
	const int32x4_t new = vmulq_s32(vsubq_s32(vdupq_n_s32(1 << 15), update), fresh);
	const int32x4_t h = vrshrq_n_s32(vaddq_s32(new, old), 15);

	vstrhq_p_s32(&run->c[j], h, some);
	recurrent_mve_put(&run->next[j], to, h, some);
}

/* The reset gate is applied to the product of matrix and state. */
static void recurrent_mve_step_gru_linear(struct run *run)
{
	const struct output to = run->to;
	struct group group = recurrent_group_first(run, run->h);

	for (int32_t j = 0; j < run->p->hidden; j += ROWS) {
		const mve_pred16_t some = vctp32q((uint32_t)(run->p->hidden - j));
		const int32x4_t update = recurrent_mve_logistic(recurrent_mve_gates(&group));
		const int32x4_t reset = recurrent_mve_logistic(recurrent_mve_gates(&group));
		const struct parts parts = recurrent_mve_multiply(&group);
		int32x4_t sum = vaddq_s32(parts.from_h, vldrwq_z_s32(&run->p->again[j], some));

		sum = recurrent_mve_saturate16(vshrq_n_s32(sum, 3));
		sum = vrshrq_n_s32(vmulq_s32(reset, sum), 15);
		sum = recurrent_mve_saturate16(vaddq_s32(sum, vshrq_n_s32(parts.from_x, 3)));
		recurrent_mve_renew(run, &to, j, update, recurrent_mve_tanh(sum));
	}
}

/* The reset gate is applied to the state, so all of them come first. */
static void recurrent_mve_step_gru(struct run *run)
{
	const struct output to = run->to;
	struct group group = recurrent_group_first(run, run->h);

	for (int32_t j = 0; j < run->p->hidden; j += ROWS) {
		const mve_pred16_t some = vctp32q((uint32_t)(run->p->hidden - j));
		const int32x4_t update = recurrent_mve_logistic(recurrent_mve_gates(&group));
		const int32x4_t reset = recurrent_mve_logistic(recurrent_mve_gates(&group));
		const int32x4_t h = vmulq_s32(reset, vldrhq_z_s32(&run->c[j], some));

		vstrhq_p_s32(&run->update[j], update, some);
		recurrent_mve_put(&run->masked[j], &to, vrshrq_n_s32(h, 15), some);
		recurrent_group_skip(run, &group, 1);
	}
	group = recurrent_group_first(run, run->masked);
	for (int32_t j = 0; j < run->p->hidden; j += ROWS) {
		const mve_pred16_t some = vctp32q((uint32_t)(run->p->hidden - j));
		const int32x4_t update = vldrhq_z_s32(&run->update[j], some);

		recurrent_group_skip(run, &group, 2);
		recurrent_mve_renew(run, &to, j, update,
				    recurrent_mve_tanh(recurrent_mve_gates(&group)));
	}
}

void tinyml_rnn_mve_s8(const struct tinyml_recurrent_s8 *p,
		       const struct tinyml_recurrent_tensors *t)
{
	recurrent_run_all(p, t, false, recurrent_mve_step_rnn);
}

void tinyml_gru_mve_s8(const struct tinyml_recurrent_s8 *p,
		       const struct tinyml_recurrent_tensors *t)
{
	recurrent_run_all(p, t, true,
			  p->again != NULL ? recurrent_mve_step_gru_linear
					   : recurrent_mve_step_gru);
}

void tinyml_recurrent_lstm_mve_s8(const struct tinyml_recurrent_s8 *p,
				  const struct tinyml_recurrent_tensors *t)
{
	recurrent_run_all(p, t, false, recurrent_mve_step_lstm);
}

#endif /* TINYML_CORE_MVE */
