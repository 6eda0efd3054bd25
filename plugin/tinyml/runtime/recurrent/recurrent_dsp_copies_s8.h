/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Copies of inputs and states as int16, and what else is the same in every step, of recurrent
 * layers with DSP instructions. */

#ifndef TINYML_RECURRENT_DSP_COPIES_S8_H_
#define TINYML_RECURRENT_DSP_COPIES_S8_H_

#include <stdint.h>

#include <tinyml/recurrent_s8.h>

#include "recurrent_dsp_unit_s8.h"

typedef int16_t recurrent_run_element;

static inline int32_t recurrent_run_padded(int32_t count)
{
	return (count + 3) & ~3;
}

/* Gates come in fours. */
static inline int32_t recurrent_run_updates(int32_t hidden)
{
	return recurrent_run_padded(hidden);
}

/* Where an element is in a copy: of every four, elements 0 and 2 are in a word, then 1 and 3, as
 * SXTB16 unpacks bytes.
 */
static inline int32_t recurrent_run_place(int32_t i)
{
	return (i & ~3) + (i & 1) * 2 + (i >> 1 & 1);
}

/* Sums of inputs are shifted to the left by 8 bits; their elements, by what is missing. */
static inline void recurrent_run_take(int16_t *to, const int8_t *x,
				      const struct tinyml_recurrent_s8 *p)
{
	const int32_t count = p->inputs;
	int32_t a, b;

	if (p->x_left > 8) {
		for (int32_t i = 0; i < count; i++) {
			to[recurrent_run_place(i)] = (int16_t)(x[i] * (1 << (p->x_left - 8)));
		}
		return;
	}
	/* clang-format off */
#define FOUR                                                                                       \
	"ldr %0, [%2], #4\n\t"                                                                     \
	"sxtb16 %1, %0\n\t"                                                                        \
	"sxtb16 %0, %0, ror #8\n\t"                                                                \
	"strd %1, %0, [%3], #8\n\t"
	/* clang-format on */
	if ((count & 4) != 0) {
		__asm__ volatile(FOUR : "=&r"(a), "=&r"(b), "+r"(x), "+r"(to) : : "memory");
	}
	for (int32_t eights = count >> 3; eights != 0; eights--) {
		__asm__ volatile(FOUR FOUR : "=&r"(a), "=&r"(b), "+r"(x), "+r"(to) : : "memory");
	}
#undef FOUR
	for (int32_t i = 0; i < (count & 3); i++) {
		to[recurrent_run_place(i)] = x[i];
	}
}

/* Bytes of copies: of r0 `y`, r1 `h` and r2 `count`. Flags say which bytes of words SEL takes from
 * its first operand: those of elements 0 and 2.
 */
/* clang-format off */
#define BYTES(first, second)                                                                       \
	"lsl " second ", " second ", #8\n\t"                                                       \
	"sel " first ", " first ", " second "\n\t"
#define STORED(first) "str " first ", [r0], #4\n\t"
/* clang-format on */
TINYML_ASSEMBLY static void recurrent_run_give(int8_t *y TINYML_UNSEEN,
					       const int16_t *h TINYML_UNSEEN,
					       int32_t count TINYML_UNSEEN)
{
	/* clang-format off */
	__asm__ volatile(
		"push {r4-r10, lr}\n\t"
		"mov.w r3, #0x00ff00ff\n\t"
		"uadd8 r3, r3, r3\n\t" /* which carries in bytes 0 and 2 */
		"subs r2, #16\n\t"
		"blt 2f\n"
		"1:\n\t"
		"ldm r1!, {r3-r10}\n\t"
		BYTES("r3", "r4") STORED("r3")
		BYTES("r5", "r6") STORED("r5")
		BYTES("r7", "r8") STORED("r7")
		BYTES("r9", "r10") STORED("r9")
		"subs r2, #16\n\t"
		"bge 1b\n"
		"2:\n\t"
		"adds r2, #12\n\t"
		"blt 4f\n"
		"3:\n\t"
		"ldrd r3, r4, [r1], #8\n\t"
		BYTES("r3", "r4") STORED("r3")
		"subs r2, #4\n\t"
		"bge 3b\n"
		"4:\n\t"
		"adds r2, #4\n\t"
		"beq 6f\n\t"
		"ldrd r3, r4, [r1]\n\t"
		BYTES("r3", "r4")
		"5:\n\t"
		"strb r3, [r0], #1\n\t"
		"lsr r3, r3, #8\n\t"
		"subs r2, #1\n\t"
		"bne 5b\n"
		"6:\n\t"
		"pop {r4-r10, pc}\n\t");
	/* clang-format on */
}
#undef STORED
#undef BYTES

static inline int32_t recurrent_run_saturate8(int32_t x)
{
	int32_t limited;

	__asm__("ssat %0, #8, %1" : "=r"(limited) : "r"(x));
	return limited;
}

struct own {
	struct unit unit;
	int32_t ahead;          /* elements from the state's copy to where its loop ends */
	int32_t whole;          /* cells in fours */
	int32_t others;         /* cells after them */
	uint32_t states;        /* BECOMES_STATES, of RNN */
	uint32_t last;          /* THEN_LAST, of LSTM */
	uint32_t fours;         /* of GRU whose cells come in fours: THEN_MASK or THEN_GATES */
	const uint16_t *places; /* from recurrent_dsp_unit_gates(NULL) */
};

/* Where the products of a copy are computed, of places from `first` on; returns how many elements
 * the loop's end is ahead.
 */
static __attribute__((noinline)) int32_t recurrent_dsp_copies_products(struct products *products,
								       struct others *others,
								       const uint16_t *places,
								       enum place first,
								       int32_t padded)
{
	const int32_t fours = padded >> 2;
	const int32_t odd = fours & 1;
	const int32_t eights = (fours - 1) >> 1;
	const int32_t laps = eights > EIGHTS ? (eights - 1) / EIGHTS : 0;
	const int32_t last = eights - EIGHTS * laps;
	const uint16_t *const own = &places[first];
	const uint32_t base = (uint32_t)(uintptr_t)places + 1;

	products->first = base + own[odd != 0 ? X_FOUR - X_EIGHT : 0];
	others->rest = base + own[X_END - X_EIGHT] -
		       (uint32_t)(EIGHT_BYTES * last + (last > 1 ? BACK_BYTES : 0));
	others->entry = laps != 0 ? base + own[X_LOOP - X_EIGHT] : others->rest;
	return (odd != 0 ? 4 : 8) + 8 * EIGHTS * laps;
}

/* The address of a place: in Thumb, an odd one. */
static inline uint32_t recurrent_dsp_copies_at(const struct own *own, enum place place)
{
	return (uint32_t)(uintptr_t)own->places + own->places[place] + 1;
}

static inline void recurrent_run_prepare(struct own *own, const struct tinyml_recurrent_s8 *p,
					 recurrent_run_element *x)
{
	struct unit *const unit = &own->unit;
	const int32_t inputs = recurrent_run_padded(p->inputs);
	const int32_t hidden = recurrent_run_padded(p->hidden);
	recurrent_run_element *const masked = x + inputs + 2 * hidden; /* as in struct run */

	own->places = recurrent_dsp_unit_gates(NULL);
	unit->scale = (struct scale){p->out_factor * (1 << (32 - p->out_shift)), p->out_zero};
	unit->x.copy = x;
	unit->of_x.end = x + recurrent_dsp_copies_products(&unit->x, &unit->of_x, own->places,
							   X_EIGHT, inputs);
	own->ahead =
		recurrent_dsp_copies_products(&unit->h, &unit->of_h, own->places, H_EIGHT, hidden);
	unit->curve.middle = &tinyml_tanh_steps_s16[256];
	unit->curve.bits = CURVE_BITS;
	own->whole = p->hidden & -4;
	own->others = p->hidden & 3;
	unit->then = recurrent_dsp_copies_at(own, THEN_RETURN);
	own->states = recurrent_dsp_copies_at(own, BECOMES_STATES);
	own->last = recurrent_dsp_copies_at(own, THEN_LAST);
	own->fours = recurrent_dsp_copies_at(own, p->again != NULL ? THEN_GATES : THEN_MASK);
	unit->cells.start = 1 << (14 + p->cell_bits);
	unit->cells.bits = p->cell_bits;
	unit->cells.fresh = recurrent_dsp_copies_at(own, BECOMES_CELLS);
	unit->cells.logistic = recurrent_dsp_copies_at(own, BECOMES_LOGISTIC);
	unit->cells.to = unit->cells.gates;
	unit->states.becomes =
		recurrent_dsp_copies_at(own, p->again != NULL ? BECOMES_RESET : BECOMES_TANH);
	unit->states.then = recurrent_dsp_copies_at(own, THEN_RENEW);
	unit->states.update = masked;
	unit->states.masked = masked + hidden;
	unit->states.end = masked + hidden + own->ahead;
}

#endif /* TINYML_RECURRENT_DSP_COPIES_S8_H_ */
