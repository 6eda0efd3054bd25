/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <tinyml/fixed_point.h>
#include <tinyml/lstm.h>
#include <tinyml/tinyml.h>
#include <tinyml/transcendental.h>

#if TINYML_CORE_MVE
#include <arm_mve.h>
#elif TINYML_CORE_DSP
#include "../weighted/dsp_s8.h"
#endif

enum { INPUT, FORGET, CELL, OUTPUT };

#define ROWS 4

static int32_t lstm_s8_dot(const int8_t *a, const int8_t *b, int32_t length, int32_t acc)
{
	for (int32_t i = 0; i < length; i++) {
		acc += a[i] * b[i];
	}
	return acc;
}

/* Adds the products of a vector with four rows, one after the other in w. */
static void lstm_s8_dot_four(const int8_t *x, const int8_t *w, int32_t length, int32_t sums[ROWS])
{
	const int8_t *w1 = w + length, *w2 = w1 + length, *w3 = w2 + length;
	int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3], i = 0;

#if TINYML_CORE_MVE
	for (; i < length; i += 16) {
		const mve_pred16_t some = vctp8q((uint32_t)(length - i));
		const int8x16_t v = vldrbq_z_s8(&x[i], some);

		s0 = vmladavaq_s8(s0, v, vldrbq_z_s8(&w[i], some));
		s1 = vmladavaq_s8(s1, v, vldrbq_z_s8(&w1[i], some));
		s2 = vmladavaq_s8(s2, v, vldrbq_z_s8(&w2[i], some));
		s3 = vmladavaq_s8(s3, v, vldrbq_z_s8(&w3[i], some));
	}
#elif TINYML_CORE_DSP
	for (; i <= length - 4; i += 4) {
		const uint32_t v = tinyml_load_word(&x[i]);
		const int16x2_t even = tinyml_even_bytes(v), odd = tinyml_odd_bytes(v);
		const uint32_t v0 = tinyml_load_word(&w[i]), v1 = tinyml_load_word(&w1[i]);
		const uint32_t v2 = tinyml_load_word(&w2[i]), v3 = tinyml_load_word(&w3[i]);

		s0 = __smlad(tinyml_odd_bytes(v0), odd, __smlad(tinyml_even_bytes(v0), even, s0));
		s1 = __smlad(tinyml_odd_bytes(v1), odd, __smlad(tinyml_even_bytes(v1), even, s1));
		s2 = __smlad(tinyml_odd_bytes(v2), odd, __smlad(tinyml_even_bytes(v2), even, s2));
		s3 = __smlad(tinyml_odd_bytes(v3), odd, __smlad(tinyml_even_bytes(v3), even, s3));
	}
#endif
	for (; i < length; i++) {
		s0 += w[i] * x[i];
		s1 += w1[i] * x[i];
		s2 += w2[i] * x[i];
		s3 += w3[i] * x[i];
	}
	sums[0] = s0;
	sums[1] = s1;
	sums[2] = s2;
	sums[3] = s3;
}

static int32_t lstm_s8_rescale(int32_t x, struct tinyml_scale scale)
{
	return tinyml_rescale(x, scale.multiplier, scale.shift);
}

/* A row of a gate, before its activation: the sums of input and state. */
static int16_t lstm_s8_sum(const struct tinyml_lstm_gate_s8 *gate, int32_t in, int32_t back)
{
	const int32_t first = tinyml_clamp(lstm_s8_rescale(in, gate->scale), INT16_MIN, INT16_MAX);

	return (int16_t)tinyml_clamp(first + lstm_s8_rescale(back, gate->recurrent_scale),
				     INT16_MIN, INT16_MAX);
}

/* One gate of one step, before its activation. */
static void lstm_s8_accumulate_gate(const struct tinyml_lstm_s8 *p,
				    const struct tinyml_lstm_gate_s8 *gate, const int8_t *x,
				    const int8_t *state, int16_t *to)
{
	const int32_t inputs = p->inputs, cells = p->cells;
	int32_t i = 0;

	for (; i <= cells - ROWS; i += ROWS) {
		int32_t in[ROWS], back[ROWS];

		memcpy(in, &gate->bias[i], sizeof(in));
		memcpy(back, &gate->recurrent_bias[i], sizeof(back));
		lstm_s8_dot_four(x, &gate->weights[i * inputs], inputs, in);
		lstm_s8_dot_four(state, &gate->recurrent[i * cells], cells, back);
		for (int32_t k = 0; k < ROWS; k++) {
			to[i + k] = lstm_s8_sum(gate, in[k], back[k]);
		}
	}
	for (; i < cells; i++) {
		to[i] = lstm_s8_sum(
			gate, lstm_s8_dot(x, &gate->weights[i * inputs], inputs, gate->bias[i]),
			lstm_s8_dot(state, &gate->recurrent[i * cells], cells,
				    gate->recurrent_bias[i]));
	}
}

/* tanh(a) or 1 / (1 + exp(-a)), a with integer_bits before the point; the result is in Q0.15. */
static inline __attribute__((always_inline)) int32_t lstm_s8_activation(int32_t a,
									int32_t integer_bits,
									bool is_tanh)
{
	/* exp(-2 |a|) is exp(-|a|) with the point one bit further to the right */
	const int32_t e = tinyml_exp_s16(a > 0 ? -a : a, is_tanh ? integer_bits + 1 : integer_bits);
	const int32_t quotient = tinyml_twice_one_over_one_plus_s16(e);

	if (is_tanh) {
		const int32_t size = tinyml_saturating_shift_left_s16(quotient - (1 << 13), 2);

		return a == 0 ? 0 : a > 0 ? size : -size;
	}

	const int32_t positive = tinyml_saturating_shift_left_s16(quotient, 1);

	return a == 0 ? 1 << 14 : a > 0 ? positive : INT16_MAX - positive;
}

/* With the number of bits known, compilers unroll the functions. */
static void lstm_s8_tanh(int16_t *gate, int32_t count)
{
	for (int32_t i = 0; i < count; i++) {
		gate[i] = (int16_t)lstm_s8_activation(gate[i], 3, true);
	}
}

static void lstm_s8_logistic(int16_t *gate, int32_t count)
{
	for (int32_t i = 0; i < count; i++) {
		gate[i] = (int16_t)lstm_s8_activation(gate[i], 3, false);
	}
}

static void lstm_s8_step(const struct tinyml_lstm_s8 *p, const int8_t *x, int8_t *state,
			 int16_t *cell, int16_t *gates)
{
	/* 2^-15 * 2^-15 to the cell's scale, which is 2^(integer bits - 15) */
	const int32_t new_shift = 15 + p->cell_integer_bits;

	for (int32_t g = 0; g < 4; g++) {
		int16_t *const gate = &gates[g * p->cells];

		lstm_s8_accumulate_gate(p, &p->gates[g], x, state, gate);
		if (g == CELL) {
			lstm_s8_tanh(gate, p->cells);
		} else {
			lstm_s8_logistic(gate, p->cells);
		}
	}
	for (int32_t i = 0; i < p->cells; i++) {
		const int32_t in = gates[INPUT * p->cells + i];
		const int32_t forget = gates[FORGET * p->cells + i];
		const int32_t new = gates[CELL * p->cells + i];
		const int32_t out = gates[OUTPUT * p->cells + i];
		int32_t c = tinyml_rounding_shift_right(forget * cell[i], 15);

		c += tinyml_rounding_shift_right(in * new, new_shift);
		c = tinyml_clamp(tinyml_clamp(c, INT16_MIN, INT16_MAX),
				 p->cell_limit == INT16_MAX ? INT16_MIN : -p->cell_limit,
				 p->cell_limit);
		cell[i] = (int16_t)c;
		c = lstm_s8_rescale(lstm_s8_activation(c, p->cell_integer_bits, true) * out,
				    p->hidden_scale);
		state[i] = (int8_t)tinyml_clamp(c + p->state_zero, INT8_MIN, INT8_MAX);
	}
}

void tinyml_lstm_s8(const struct tinyml_lstm_s8 *p, const int8_t *x, int8_t *y, int8_t *state,
		    int16_t *cell, int16_t *gates)
{
	for (int32_t b = 0; b < p->batches; b++) {
		for (int32_t t = 0; t < p->steps; t++) {
			const int32_t row = b * p->batch_stride + t * p->step_stride;

			lstm_s8_step(p, &x[row * p->inputs], state, cell, gates);
			for (int32_t i = 0; i < p->cells && y != NULL; i++) {
				y[row * p->cells + i] = state[i];
			}
		}
		state += p->cells;
		cell += p->cells;
	}
}
