/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* RNN, GRU and LSTM on int8 with DSP instructions: four cells at a time, whose gates are pairs of
 * int16 in a word. */

#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <tinyml/recurrent_s8.h>

#include "recurrent_dsp_copies_s8.h"
#include "recurrent_dsp_pairs_s8.h"
#include "recurrent_dsp_unit_s8.h"
#include "recurrent_run_s8.h"

/* Before the first gate of a step. */
static inline struct unit *recurrent_dsp_first(struct run *run, int32_t becomes)
{
	struct unit *const unit = &run->own.unit;

	unit->h = run->h;
	unit->w = run->p->w;
	unit->becomes = becomes;
	return unit;
}

/* Gates are written to so many elements. */
static inline void recurrent_dsp_write(struct unit *unit, int16_t *to, int32_t count)
{
	unit->to = (uint32_t *)(void *)to;
	unit->to_end = (uint32_t *)(void *)(to + count);
}

/* What steps of LSTM keep in registers. */
struct lstm {
	struct scale to;
	const int32_t *middle; /* of the table of tanh */
	int32_t tanh_bits;
	int32_t bits;  /* integer bits of a cell */
	int32_t start; /* a half of a cell's last bit, before a product loses `bits` */
};

/* One cell of a pair; the result is the state after a step, see recurrent_dsp_pairs_output(). */
static inline __attribute__((always_inline)) int32_t recurrent_dsp_lstm(struct lstm *lstm, bool top,
									const uint32_t *gates,
									uint32_t fresh,
									uint32_t cell, int32_t *c)
{
	const uint32_t in = gates[0], out = gates[2], forget = gates[4];
	const int32_t new = recurrent_dsp_pairs_product(top, in, fresh, lstm->start) >> lstm->bits;
	int32_t kept = recurrent_dsp_pairs_product(top, forget, cell, new);
	int32_t h;

	__asm__("ssat %0, #16, %1, asr #15" : "=r"(kept) : "r"(kept));
	*c = kept;
	h = (int32_t)((uint32_t)kept << lstm->bits);
	__asm__("ssat %0, #16, %1, asr #3" : "=r"(h) : "r"(h));
	h = recurrent_dsp_pairs_curve(lstm->middle, &lstm->tanh_bits, h);
	h = top ? recurrent_dsp_pairs_tb(out, (uint32_t)h, HALF)
		: recurrent_dsp_pairs_bb(out, (uint32_t)h, HALF);
	return recurrent_dsp_pairs_output(&lstm->to, h >> 15);
}

static void recurrent_dsp_step_rnn(struct run *run)
{
	struct unit *const unit = recurrent_dsp_first(run, STATES);

	recurrent_dsp_write(unit, run->next, run->hidden);
	recurrent_dsp_unit_gate(unit);
}

/* Two cells of LSTM, of four; `gates`: its input, output and forget gates, by fours. */
static inline __attribute__((always_inline)) void
recurrent_dsp_lstm_pair(struct lstm *lstm, const uint32_t *gates, uint32_t fresh, int16_t *cell,
			int16_t *next)
{
	const uint32_t kept = recurrent_dsp_pairs_load(cell);
	int32_t c[2], h[2];

	h[0] = recurrent_dsp_lstm(lstm, false, gates, fresh, kept, &c[0]);
	h[1] = recurrent_dsp_lstm(lstm, true, gates, fresh, kept, &c[1]);
	recurrent_dsp_pairs_store(cell, recurrent_dsp_pairs_pair(c[0], c[1]));
	recurrent_dsp_pairs_store(next, recurrent_dsp_pairs_bytes(h[0], h[1]));
}

static void recurrent_dsp_step_lstm(struct run *run)
{
	struct lstm lstm = {run->own.unit.scale, &tinyml_tanh_steps_s16[256], 1 << 7,
			    run->p->cell_bits, HALF * (1 << run->p->cell_bits)};
	uint32_t gates[6];
	struct span span;
	struct unit *const unit = recurrent_dsp_first(run, TANH);
	int16_t *next = run->next;

	unit->to_end = gates + 6;
	recurrent_dsp_pairs_first(&span, run);
	do {
		for (int16_t *c = span.c; next != span.end; next += ROWS, c += ROWS) {
			uint64_t fresh;

			unit->to = gates;
			recurrent_dsp_unit_logistic(unit);
			fresh = recurrent_dsp_unit_gate(unit);
			recurrent_dsp_lstm_pair(&lstm, gates, (uint32_t)fresh, c, next);
			recurrent_dsp_lstm_pair(&lstm, gates + 1, (uint32_t)(fresh >> 32), c + 2,
						next + 2);
		}
	} while (recurrent_dsp_pairs_more(&span, run));
	recurrent_dsp_pairs_keep(&span, run);
}

/* Two of GRU's states after a step: their part of the update gate, the rest of the fresh ones. */
static inline __attribute__((always_inline)) void recurrent_dsp_renew(const struct scale *to,
								      uint32_t update,
								      uint32_t fresh,
								      int16_t *state, int16_t *next)
{
	const uint32_t old = recurrent_dsp_pairs_load(state);
	uint32_t rest; /* 2^15 less the update, which is not 0 */
	int32_t first, second;

	__asm__("usub16 %0, %1, %2" : "=r"(rest) : "r"(0x80008000u), "r"(update));
	first = recurrent_dsp_pairs_bb(rest, fresh, recurrent_dsp_pairs_bb(update, old, HALF)) >>
		15;
	second = recurrent_dsp_pairs_tt(rest, fresh, recurrent_dsp_pairs_tt(update, old, HALF)) >>
		 15;
	recurrent_dsp_pairs_store(state, recurrent_dsp_pairs_pair(first, second));
	recurrent_dsp_pairs_store(next, recurrent_dsp_pairs_outputs(to, first, second));
}

/* The update gates of all cells, then all reset gates: from `masked` to the end of `update`, which
 * are neighbours. */
static inline struct unit *recurrent_dsp_gru_gates(struct run *run, int32_t becomes)
{
	struct unit *const unit = recurrent_dsp_first(run, becomes);

	recurrent_dsp_write(unit, run->masked, 2 * run->hidden);
	recurrent_dsp_unit_logistic(unit);
	return unit;
}

/* Four of GRU's cells: the last gate, and their states after a step. */
static inline __attribute__((always_inline)) void
recurrent_dsp_gru_cells(struct unit *unit, const struct scale *to, const int16_t *update,
			int16_t *state, int16_t *next)
{
	const uint64_t fresh = recurrent_dsp_unit_gate(unit);

	recurrent_dsp_renew(to, recurrent_dsp_pairs_load(update), (uint32_t)fresh, state, next);
	recurrent_dsp_renew(to, recurrent_dsp_pairs_load(update + 2), (uint32_t)(fresh >> 32),
			    state + 2, next + 2);
}

/* The reset gate is applied to the product of matrix and state. */
static void recurrent_dsp_step_gru_linear(struct run *run)
{
	struct unit *const unit = recurrent_dsp_gru_gates(run, RESET);
	const int16_t *update = run->masked;
	const struct scale to = unit->scale;
	int32_t last[ROWS];
	struct span span;
	int16_t *next = run->next;

	unit->reset = run->masked + run->hidden;
	unit->again = run->p->again;
	recurrent_dsp_pairs_first(&span, run);
	for (;;) {
		for (int16_t *c = span.c; next != span.end;
		     next += ROWS, c += ROWS, update += ROWS) {
			recurrent_dsp_gru_cells(unit, &to, update, c, next);
		}
		if (!recurrent_dsp_pairs_more(&span, run)) {
			break;
		}
		memset(last, 0, sizeof(last));
		for (int32_t i = recurrent_dsp_pairs_whole(run); i < run->p->hidden; i++) {
			last[i % ROWS] = run->p->again[i];
			__asm__ volatile("" ::: "memory");
		}
		unit->again = last;
	}
	recurrent_dsp_pairs_keep(&span, run);
}

/* Two of GRU's states as the matrix reads them, in place of their reset gates. */
static inline __attribute__((always_inline)) void
recurrent_dsp_mask(const struct scale *to, const int16_t *state, int16_t *masked)
{
	const uint32_t reset = recurrent_dsp_pairs_load(masked);
	const uint32_t old = recurrent_dsp_pairs_load(state);
	const int32_t first = recurrent_dsp_pairs_bb(reset, old, HALF) >> 15;
	const int32_t second = recurrent_dsp_pairs_tt(reset, old, HALF) >> 15;

	recurrent_dsp_pairs_store(masked, recurrent_dsp_pairs_outputs(to, first, second));
}

/* The reset gate is applied to the state, so all of them come first. */
static void recurrent_dsp_step_gru(struct run *run)
{
	struct unit *const unit = recurrent_dsp_gru_gates(run, TANH);
	const int16_t *update = run->masked;
	int16_t *masked = run->masked + run->hidden, *next = run->next;
	const struct scale to = unit->scale;
	struct span span;

	unit->h = masked;
	recurrent_dsp_pairs_first(&span, run);
	do {
		const int16_t *const end = masked + (span.end - next);

		next = span.end;
		for (const int16_t *c = span.c; masked != end; masked += ROWS, c += ROWS) {
			recurrent_dsp_mask(&to, c, masked);
			recurrent_dsp_mask(&to, c + 2, masked + 2);
		}
	} while (recurrent_dsp_pairs_more(&span, run));
	next = run->next;
	recurrent_dsp_pairs_first(&span, run);
	do {
		for (int16_t *c = span.c; next != span.end;
		     next += ROWS, c += ROWS, update += ROWS) {
			recurrent_dsp_gru_cells(unit, &to, update, c, next);
		}
	} while (recurrent_dsp_pairs_more(&span, run));
	recurrent_dsp_pairs_keep(&span, run);
}

void tinyml_rnn_dsp_s8(const struct tinyml_recurrent_s8 *p,
		       const struct tinyml_recurrent_tensors *t)
{
	recurrent_run_all(p, t, false, recurrent_dsp_step_rnn);
}

void tinyml_gru_dsp_s8(const struct tinyml_recurrent_s8 *p,
		       const struct tinyml_recurrent_tensors *t)
{
	recurrent_run_all(p, t, true,
			  p->again != NULL ? recurrent_dsp_step_gru_linear
					   : recurrent_dsp_step_gru);
}

void tinyml_recurrent_lstm_dsp_s8(const struct tinyml_recurrent_s8 *p,
				  const struct tinyml_recurrent_tensors *t)
{
	recurrent_run_all(p, t, false, recurrent_dsp_step_lstm);
}

#endif /* TINYML_CORE_DSP */
