/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* RNN, GRU and LSTM on int8 with Helium: sixteen elements of four rows at a time; four cells in the
 * lanes of a vector. */

#include <tinyml/tinyml.h>

#if TINYML_CORE_MVE

#include <arm_mve.h>
#include <stdint.h>

#include <tinyml/recurrent_s8.h>

#include "../weighted/mve_s8.h"

typedef int8_t recurrent_run_element;

static inline int32_t recurrent_run_padded(int32_t count)
{
	return (count + 15) & ~15;
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
	tinyml_copy(to, x, p->inputs);
}

static inline void recurrent_run_give(int8_t *y, const int8_t *h, int32_t count)
{
	tinyml_copy(y, h, count);
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

static inline void recurrent_run_prepare(struct own *own, const struct tinyml_recurrent_s8 *p,
					 const recurrent_run_element *x)
{
	(void)own;
	(void)p;
	(void)x;
}

typedef int32_t recurrent_group_extent; /* vectors after the first */

static inline recurrent_group_extent recurrent_group_reach(const int8_t *copy, int32_t count)
{
	(void)copy;
	return count / 16 - 1;
}

#include "recurrent_group_s8.h"
#include "recurrent_mve_gates_s8.h"

/* int16 of four cells in lanes of 32 bits; none after the last cell is read or written. */
static inline int32x4_t recurrent_mve_load(const int16_t *from, int32_t cells)
{
	return cells >= ROWS ? vldrhq_s32(from) : vldrhq_z_s32(from, vctp32q((uint32_t)cells));
}

static inline void recurrent_mve_store(int16_t *to, int32x4_t x, int32_t cells)
{
	if (cells >= ROWS) {
		vstrhq_s32(to, x);
	} else {
		vstrhq_p_s32(to, x, vctp32q((uint32_t)cells));
	}
}

/* States, times the factor of the output, as int8. A copy has room for more cells than there are.
 */
static inline void recurrent_mve_put(int8_t *y, const struct output *to, int32x4_t h)
{
	const int32x4_t wide = vshlq_r_s32(vaddq_n_s32(h, to->bias), -to->shift);
	const int16x8_t half = vqmovnbq_s32(vuninitializedq_s16(), wide);

	vstrbq_s32(y, vreinterpretq_s32_s8(vqmovnbq_s16(vuninitializedq_s8(), half)));
}

static void recurrent_mve_step_rnn(struct run *run)
{
	const struct output to = run->to;
	struct group group = recurrent_group_first(run, run->h);
	int32_t j = 0;

	for (; j + ROWS < run->p->hidden; j += 2 * ROWS) {
		const int16x8_t h = recurrent_mve_gates_tanh(recurrent_mve_gates_two(&group));
		const int16x8_t factor = vdupq_n_s16((int16_t)to.factor);

		recurrent_mve_put(&run->next[j], &to, vmullbq_int_s16(h, factor));
		recurrent_mve_put(&run->next[j + ROWS], &to, vmulltq_int_s16(h, factor));
	}
	if (j < run->p->hidden) {
		const int16x8_t h = recurrent_mve_gates_tanh(
			recurrent_mve_gates_one(recurrent_mve_gates_sums(&group)));

		recurrent_mve_put(&run->next[j], &to,
				  vmullbq_int_s16(h, vdupq_n_s16((int16_t)to.factor)));
	}
}

static void recurrent_mve_step_lstm(struct run *run)
{
	const struct output to = run->to;
	const int32_t bits = run->p->cell_bits;
	struct group group = recurrent_group_first(run, run->h);

	for (int32_t j = 0; j < run->p->hidden; j += ROWS) {
		const int32_t cells = run->p->hidden - j;
		const int16x8_t in_out =
			recurrent_mve_gates_logistic(recurrent_mve_gates_two(&group));
		const int16x8_t others = recurrent_mve_gates_two(&group);
		const int16x8_t forget = recurrent_mve_gates_logistic(others);
		const int16x8_t fresh = recurrent_mve_gates_high(recurrent_mve_gates_tanh(others));
		const int32x4_t old = recurrent_mve_load(&run->c[j], cells);
		int32x4_t new = vshlq_r_s32(vmullbq_int_s16(in_out, fresh), -bits);
		int16x8_t c;

		new = vaddq_s32(new, vmullbq_int_s16(forget, vreinterpretq_s16_s32(old)));
		c = vqrshrnbq_n_s32(forget, new, 15);
		recurrent_mve_store(&run->c[j], vreinterpretq_s32_s16(c), cells);
		c = recurrent_mve_gates_tanh(vqshlq_r_s16(c, bits - 3));
		new = vrshrq_n_s32(vmullbq_int_s16(recurrent_mve_gates_high(in_out), c), 15);
		recurrent_mve_put(&run->next[j], &to, vmulq_n_s32(new, to.factor));
	}
}

/* States of cells from j on, of which so many are left. */
static inline void recurrent_mve_renew(const struct run *run, const struct output *to, int32_t j,
				       int32_t cells, int16x8_t update, int16x8_t fresh)
{
	const int32x4_t old = recurrent_mve_load(&run->c[j], cells);
	const int16x8_t rest = vaddq_n_s16(update, INT16_MIN); /* 2^15 less, negative */
	int32x4_t h = vmullbq_int_s16(rest, vnegq_s16(fresh));

	h = vaddq_s32(h, vmullbq_int_s16(update, vreinterpretq_s16_s32(old)));
	h = vrshrq_n_s32(h, 15);
	recurrent_mve_store(&run->c[j], h, cells);
	recurrent_mve_put(&run->next[j], to, vmulq_n_s32(h, to->factor));
}

/* The reset gate is applied to the product of matrix and state. */
static void recurrent_mve_step_gru_linear(struct run *run)
{
	const struct output to = run->to;
	struct group group = recurrent_group_first(run, run->h);

	for (int32_t j = 0; j < run->p->hidden; j += ROWS) {
		const int32_t cells = run->p->hidden - j;
		const int16x8_t gates =
			recurrent_mve_gates_logistic(recurrent_mve_gates_two(&group));
		const struct parts parts = recurrent_mve_gates_parts(&group);
		const int32_t *const again = &run->p->again[j];
		int32x4_t sum;
		int16x8_t back;

		sum = cells >= ROWS ? vldrwq_s32(again)
				    : vldrwq_z_s32(again, vctp32q((uint32_t)cells));
		back = recurrent_mve_gates_join(gates, vaddq_s32(parts.from_h, sum));
		sum = vrshrq_n_s32(vmulltq_int_s16(gates, back), 15);
		sum = vaddq_s32(sum, vshrq_n_s32(parts.from_x, 3));
		recurrent_mve_renew(run, &to, j, cells, gates,
				    recurrent_mve_gates_tanh(vqmovnbq_s32(back, sum)));
	}
}

/* The same with the update gate that was kept. */
static inline void recurrent_mve_renew_later(const struct run *run, const struct output *to,
					     int32_t j, int32_t cells, int16x8_t fresh)
{
	const int32x4_t update = recurrent_mve_load(&run->update[j], cells);

	recurrent_mve_renew(run, to, j, cells, vreinterpretq_s16_s32(update), fresh);
}

/* The reset gate is applied to the state, so all of them come first. */
static void recurrent_mve_step_gru(struct run *run)
{
	const struct output to = run->to;
	struct group group = recurrent_group_first(run, run->h);
	int32_t j = 0;

	for (int32_t i = 0; i < run->p->hidden; i += ROWS) {
		const int32_t cells = run->p->hidden - i;
		const int16x8_t gates =
			recurrent_mve_gates_logistic(recurrent_mve_gates_two(&group));
		const int16x8_t old = vreinterpretq_s16_s32(recurrent_mve_load(&run->c[i], cells));
		const int32x4_t h =
			vrshrq_n_s32(vmullbq_int_s16(recurrent_mve_gates_high(gates), old), 15);

		recurrent_mve_store(&run->update[i], vreinterpretq_s32_s16(gates), cells);
		recurrent_mve_put(&run->masked[i], &to, vmulq_n_s32(h, to.factor));
	}
	group.h = run->masked;
	for (; j + ROWS < run->p->hidden; j += 2 * ROWS) {
		const int16x8_t fresh = recurrent_mve_gates_tanh(recurrent_mve_gates_two(&group));

		recurrent_mve_renew_later(run, &to, j, ROWS, fresh);
		recurrent_mve_renew_later(run, &to, j + ROWS, run->p->hidden - j - ROWS,
					  recurrent_mve_gates_high(fresh));
	}
	if (j < run->p->hidden) {
		recurrent_mve_renew_later(run, &to, j, run->p->hidden - j,
					  recurrent_mve_gates_tanh(recurrent_mve_gates_one(
						  recurrent_mve_gates_sums(&group))));
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
