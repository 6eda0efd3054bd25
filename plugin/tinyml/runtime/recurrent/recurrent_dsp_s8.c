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

/* struct curve.add of most gates. */
#define TANH     0x4000u
#define LOGISTIC 0x40004000u

/* The products of the state, whose copy is `h`. */
static inline void recurrent_dsp_state(struct own *own, const int16_t *h)
{
	own->unit.h.copy = h;
	own->unit.of_h.end = h + own->ahead;
}

/* Before the first gate of a step: a half, and what makes tanh the function of most gates. */
static inline void recurrent_dsp_first(struct run *run, uint32_t add)
{
	recurrent_dsp_state(&run->own, run->h);
	run->own.unit.w = run->p->w;
	run->own.unit.curve.add = add;
}

/* So many gates, written one after the other. */
static inline void recurrent_dsp_gates(struct unit *unit, uint32_t becomes, int16_t *to,
				       int32_t count)
{
	unit->becomes = becomes;
	unit->to = (uint32_t *)(void *)to;
	unit->to_end = (uint32_t *)(void *)(to + count);
	recurrent_dsp_unit_gates(&unit->x);
}

static void recurrent_dsp_step_rnn(struct run *run)
{
	recurrent_dsp_first(run, TANH);
	recurrent_dsp_gates(&run->own.unit, run->own.states, run->next, run->hidden);
}

/* So many cells of LSTM. */
static inline void recurrent_dsp_cells(struct run *run, int16_t *c, int32_t count)
{
	struct cells *const cells = &run->own.unit.cells;

	cells->c = c;
	cells->next_end = cells->next + count;
	recurrent_dsp_gates(&run->own.unit, run->own.unit.cells.logistic,
			    (int16_t *)(void *)cells->gates, 3 * ROWS);
}

static void recurrent_dsp_step_lstm(struct run *run)
{
	const int32_t whole = run->own.whole;
	struct cells *const cells = &run->own.unit.cells;

	recurrent_dsp_first(run, LOGISTIC);
	cells->next = run->next;
	run->own.unit.then = run->own.last;
	if (whole != 0) {
		recurrent_dsp_cells(run, run->c, whole);
	}
	if (whole != run->hidden) {
		int16_t last[ROWS];

		recurrent_dsp_pairs_begin(last, run);
		recurrent_dsp_cells(run, last, ROWS);
		recurrent_dsp_pairs_end(last, run);
	}
}

/* So many of GRU's states after a step, in fours: their parts of the update gates, the rest of the
 * fresh ones, which are in their place.
 */
static __attribute__((noinline)) void recurrent_dsp_renew(const struct scale *to,
							  const int16_t *update, int16_t *c,
							  int16_t *next, int32_t count)
{
	const int16_t *const end = next + count;

	while (next != end) {
		uint32_t u0, u1, f0, f1, old;

		/* clang-format off */
#define TWO(u, f)                                                                                  \
	"ldr %[old], [%[c]]\n\t"                                                                   \
	"smlabb r12, " u ", %[old], %[half]\n\t"                                                   \
	"smlatt %[old], " u ", %[old], %[half]\n\t"                                                \
	"usub16 " u ", %[one], " u "\n\t" /* 2^15 less the update, which is not 0 */               \
	"smlabb r12, " u ", " f ", r12\n\t"                                                        \
	"smlatt %[old], " u ", " f ", %[old]\n\t"                                                  \
	"asr r12, r12, #15\n\t"                                                                    \
	"asr %[old], %[old], #15\n\t"                                                              \
	"smmlar " u ", r12, %[factor], %[zero]\n\t"                                                \
	"smmlar " f ", %[old], %[factor], %[zero]\n\t"                                             \
	"pkhbt r12, r12, %[old], lsl #16\n\t"                                                      \
	"str r12, [%[c]], #4\n\t"
		__asm__ volatile(
			"ldrd %[u0], %[u1], [%[update]], #8\n\t"
			"ldrd %[f0], %[f1], [%[next]]\n\t"
			TWO("%[u0]", "%[f0]")
			TWO("%[u1]", "%[f1]")
			PLACED("%[u0]", "%[f0]", "%[u1]", "%[f1]")
			"strd %[u0], %[f0], [%[next]], #8\n\t"
			: [u0] "=&r"(u0), [u1] "=&r"(u1), [f0] "=&r"(f0), [f1] "=&r"(f1),
			  [old] "=&r"(old), [update] "+r"(update), [c] "+r"(c), [next] "+r"(next)
			: [half] "r"(HALF), [one] "r"(0x80008000u), [factor] "r"(to->factor),
			  [zero] "r"(to->zero)
			: "r12", "cc", "memory");
#undef TWO
		/* clang-format on */
	}
}

/* The end of a step of GRU whose cells do not come in fours. */
static void recurrent_dsp_states(struct run *run)
{
	const struct scale *const to = &run->own.unit.scale;
	const int32_t whole = run->own.whole;
	int16_t last[ROWS];

	recurrent_dsp_renew(to, run->masked, run->c, run->next, whole);
	recurrent_dsp_pairs_begin(last, run);
	recurrent_dsp_renew(to, run->masked + whole, last, run->next + whole, ROWS);
	recurrent_dsp_pairs_end(last, run);
}

/* A step whose cells come in fours. */
static inline void recurrent_dsp_fours(struct run *run)
{
	struct unit *const unit = &run->own.unit;

	recurrent_dsp_first(run, LOGISTIC);
	unit->then = run->own.fours;
	unit->states.next = (uint32_t *)(void *)run->next;
	unit->states.next_end = (uint32_t *)(void *)(run->next + run->hidden);
	unit->states.c = run->c;
	recurrent_dsp_gates(unit, run->own.unit.cells.logistic, run->masked, 2 * run->hidden);
}

/* The reset gate is applied to the product of matrix and state. */
static __attribute__((noinline)) void recurrent_dsp_odd_linear(struct run *run)
{
	struct unit *const unit = &run->own.unit;
	const int32_t whole = run->own.whole;
	int32_t last[ROWS];

	recurrent_dsp_first(run, LOGISTIC);
	unit->then = recurrent_dsp_copies_at(&run->own, THEN_RETURN);
	/* from `masked` to the end of `update`, which are neighbours */
	recurrent_dsp_gates(unit, run->own.unit.cells.logistic, run->masked, 2 * run->hidden);
	if (whole != 0) {
		recurrent_dsp_gates(unit, recurrent_dsp_copies_at(&run->own, BECOMES_RESET),
				    run->next, whole);
	}
	memset(last, 0, sizeof(last));
	for (int32_t i = whole; i < run->p->hidden; i++) {
		last[i % ROWS] = run->p->again[i];
		__asm__ volatile("" ::: "memory"); /* no memcpy() */
	}
	unit->again = last;
	recurrent_dsp_gates(unit, recurrent_dsp_copies_at(&run->own, BECOMES_RESET),
			    run->next + whole, ROWS);
	recurrent_dsp_states(run);
}

static void recurrent_dsp_step_gru_linear(struct run *run)
{
	struct unit *const unit = &run->own.unit;

	unit->reset = run->masked + run->hidden;
	unit->again = run->p->again;
	if (run->own.others == 0) {
		recurrent_dsp_fours(run);
	} else {
		recurrent_dsp_odd_linear(run);
	}
}

/* So many of GRU's states as the matrix reads them, in fours, in place of their reset gates. */
static __attribute__((noinline)) void recurrent_dsp_mask(const struct scale *to, const int16_t *c,
							 int16_t *masked, int32_t count)
{
	const int16_t *const end = masked + count;

	while (masked != end) {
		uint32_t a, b, c0, c1;

		/* clang-format off */
#define TWO(x, old)                                                                                \
	"ldr " old ", [%[c]], #4\n\t"                                                              \
	"smlabb r12, " x ", " old ", %[half]\n\t"                                                  \
	"smlatt " old ", " x ", " old ", %[half]\n\t"                                              \
	"asr r12, r12, #15\n\t"                                                                    \
	"asr " old ", " old ", #15\n\t"                                                            \
	"smmlar " x ", r12, %[factor], %[zero]\n\t"                                                \
	"smmlar " old ", " old ", %[factor], %[zero]\n\t"
		__asm__ volatile("ldrd %[a], %[b], [%[masked]]\n\t"
			TWO("%[a]", "%[c0]")
			TWO("%[b]", "%[c1]")
			PLACED("%[a]", "%[c0]", "%[b]", "%[c1]")
			"strd %[a], %[c0], [%[masked]], #8\n\t"
			: [a] "=&r"(a), [b] "=&r"(b), [c0] "=&r"(c0), [c1] "=&r"(c1), [c] "+r"(c),
			  [masked] "+r"(masked)
			: [half] "r"(HALF), [factor] "r"(to->factor), [zero] "r"(to->zero)
			: "r12", "memory");
#undef TWO
		/* clang-format on */
	}
}

static __attribute__((noinline)) void recurrent_dsp_odd_gru(struct run *run)
{
	struct unit *const unit = &run->own.unit;
	int16_t *const masked = run->masked + run->hidden;
	const int32_t whole = run->own.whole;
	int16_t last[ROWS];

	recurrent_dsp_first(run, LOGISTIC);
	unit->then = recurrent_dsp_copies_at(&run->own, THEN_RETURN);
	recurrent_dsp_gates(unit, run->own.unit.cells.logistic, run->masked, 2 * run->hidden);
	recurrent_dsp_mask(&unit->scale, run->c, masked, whole);
	recurrent_dsp_pairs_begin(last, run);
	recurrent_dsp_mask(&unit->scale, last, masked + whole, ROWS);
	recurrent_dsp_state(&run->own, masked);
	recurrent_dsp_gates(unit, recurrent_dsp_copies_at(&run->own, BECOMES_TANH), run->next,
			    run->hidden);
	recurrent_dsp_states(run);
}

/* The reset gate is applied to the state, so all of them come first. */
static void recurrent_dsp_step_gru(struct run *run)
{
	if (run->own.others == 0) {
		recurrent_dsp_fours(run);
	} else {
		recurrent_dsp_odd_gru(run);
	}
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
