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
	for (int32_t fours = count >> 2; fours != 0; fours--) {
		int32_t a, b, c;

		/* clang-format off */
		__asm__ volatile("ldr %2, [%3], #4\n\t"
			"sxtb16 %0, %2\n\t"
			"sxtb16 %1, %2, ror #8\n\t"
			"pkhbt %2, %0, %1, lsl #16\n\t"
			"pkhtb %0, %1, %0, asr #16\n\t"
			"strd %2, %0, [%4], #8\n\t"
			: "=&r"(a), "=&r"(b), "=&r"(c), "+r"(x), "+r"(to) : : "memory");
		/* clang-format on */
	}
	for (int32_t rest = count & 3; rest != 0; rest--) {
		*to++ = *x++;
	}
}

static inline void recurrent_run_give(int8_t *y, const int16_t *h, int32_t count)
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
};

static inline void recurrent_run_prepare(struct own *own, const struct tinyml_recurrent_s8 *p,
					 const recurrent_run_element *x)
{
	own->unit.scale = (struct scale){p->out_factor * (1 << (32 - p->out_shift)), p->out_zero};
	own->unit.x = x;
	own->unit.x_again = recurrent_dsp_unit_again(recurrent_run_padded(p->inputs));
	own->unit.h_again = recurrent_dsp_unit_again(recurrent_run_padded(p->hidden));
	own->unit.x_entry = recurrent_dsp_unit_entry(recurrent_run_padded(p->inputs));
	own->unit.h_entry = recurrent_dsp_unit_entry(recurrent_run_padded(p->hidden));
	own->unit.tanh = (struct curve){0x2000u, &tinyml_tanh_steps_s16[256], CURVE_BITS};
	own->unit.logistic = own->unit.tanh;
	own->unit.logistic.add = 0x20002000u;
}

#endif /* TINYML_RECURRENT_DSP_COPIES_S8_H_ */
