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

/* Sums of inputs are shifted to the left by 8 bits; their elements, by what is missing. */
static inline void recurrent_run_take(int16_t *to, const int8_t *x,
				      const struct tinyml_recurrent_s8 *p)
{
	const int32_t count = p->inputs;

	if (p->x_left > 8) {
		for (int32_t i = 0; i < count; i++) {
			to[i] = (int16_t)(x[i] * (1 << (p->x_left - 8)));
		}
		return;
	}
	/* clang-format off */
#define FOUR                                                                                       \
	"ldr %2, [%3], #4\n\t"                                                                     \
	"sxtb16 %0, %2\n\t"                                                                        \
	"sxtb16 %1, %2, ror #8\n\t"                                                                \
	"pkhbt %2, %0, %1, lsl #16\n\t"                                                            \
	"pkhtb %0, %1, %0, asr #16\n\t"                                                            \
	"strd %2, %0, [%4], #8\n\t"
	/* clang-format on */
	int32_t a, b, c;

	if ((count & 4) != 0) {
		__asm__ volatile(FOUR
				 : "=&r"(a), "=&r"(b), "=&r"(c), "+r"(x), "+r"(to)
				 :
				 : "memory");
	}
	for (int32_t eights = count >> 3; eights != 0; eights--) {
		__asm__ volatile(FOUR FOUR
				 : "=&r"(a), "=&r"(b), "=&r"(c), "+r"(x), "+r"(to)
				 :
				 : "memory");
	}
#undef FOUR
	for (int32_t rest = count & 3; rest != 0; rest--) {
		*to++ = *x++;
	}
}

static __attribute__((noinline)) void recurrent_run_give(int8_t *y, const int16_t *h, int32_t count)
{
	/* clang-format off */
#define FOUR                                                                                       \
	"ldrd %0, %1, [%3], #8\n\t"                                                                \
	"pkhbt %2, %0, %1, lsl #16\n\t"                                                            \
	"pkhtb %0, %1, %0, asr #16\n\t"                                                            \
	"uxtb16 %2, %2\n\t"                                                                        \
	"uxtb16 %0, %0\n\t"                                                                        \
	"orr %2, %2, %0, lsl #8\n\t"                                                               \
	"str %2, [%4], #4\n\t"
	/* clang-format on */
	int32_t a, b, c;

	if ((count & 4) != 0) {
		__asm__ volatile(FOUR
				 : "=&r"(a), "=&r"(b), "=&r"(c), "+r"(h), "+r"(y)
				 :
				 : "memory");
	}
	for (int32_t eights = count >> 3; eights != 0; eights--) {
		__asm__ volatile(FOUR FOUR
				 : "=&r"(a), "=&r"(b), "=&r"(c), "+r"(h), "+r"(y)
				 :
				 : "memory");
	}
#undef FOUR
	for (count &= 3; count != 0; count--) {
		*y++ = (int8_t)*h++;
	}
}

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
	const uint16_t *places; /* from recurrent_dsp_unit_gates(NULL) */
};

/* Where the products of a copy are computed, of places from `first` on; returns how many elements
 * the loop's end is ahead.
 */
static __attribute__((noinline)) int32_t recurrent_dsp_copies_products(struct products *to,
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

	to->first = base + own[odd != 0 ? X_FOUR - X_EIGHT : 0];
	to->rest = base + own[X_END - X_EIGHT] -
		   (uint32_t)(EIGHT_BYTES * last + (last > 1 ? BACK_BYTES : 0));
	to->entry = laps != 0 ? base + own[X_LOOP - X_EIGHT] : to->rest;
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
	unit->x.end = x + recurrent_dsp_copies_products(&unit->x, own->places, X_EIGHT, inputs);
	own->ahead = recurrent_dsp_copies_products(&unit->h, own->places, H_EIGHT, hidden);
	unit->tanh = (struct curve){0x4000u, &tinyml_tanh_steps_s16[256], CURVE_BITS};
	unit->logistic = unit->tanh;
	unit->logistic.add = 0x40004000u;
	own->whole = p->hidden & -4;
	own->others = p->hidden & 3;
	unit->then = recurrent_dsp_copies_at(own, THEN_RETURN);
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
