/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Two neighbouring cells of a recurrent layer with DSP instructions: a word has the int16 of both.
 */

#ifndef TINYML_RECURRENT_DSP_PAIRS_S8_H_
#define TINYML_RECURRENT_DSP_PAIRS_S8_H_

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "recurrent_dsp_copies_s8.h"
#include "recurrent_run_s8.h"

#define HALF (1 << 14) /* in units of 2^-15 */

/* Products of the halves of two words, b(ottom) and t(op), are added to a third one. */
#define PRODUCT(halves)                                                                            \
	static inline int32_t recurrent_dsp_pairs_##halves(uint32_t a, uint32_t b, int32_t sum)    \
	{                                                                                          \
		int32_t result;                                                                    \
                                                                                                   \
		__asm__("smla" #halves " %0, %1, %2, %3"                                           \
			: "=r"(result)                                                             \
			: "r"(a), "r"(b), "r"(sum));                                               \
		return result;                                                                     \
	}
PRODUCT(bb)
PRODUCT(tt)
PRODUCT(tb)

static inline __attribute__((always_inline)) int32_t recurrent_dsp_pairs_product(bool top,
										 uint32_t a,
										 uint32_t b,
										 int32_t sum)
{
	return top ? recurrent_dsp_pairs_tt(a, b, sum) : recurrent_dsp_pairs_bb(a, b, sum);
}

static inline uint32_t recurrent_dsp_pairs_pair(int32_t bottom, int32_t top)
{
	uint32_t pair;

	__asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(pair) : "r"(bottom), "r"(top));
	return pair;
}

/* A state in units of 2^-15, times the factor of the output: an int16. */
static inline int32_t recurrent_dsp_pairs_output(const struct scale *to, int32_t h)
{
	int32_t y;

	__asm__("smmlar %0, %1, %2, %3" : "=r"(y) : "r"(h), "r"(to->factor), "r"(to->zero));
	return y;
}

/* tanh of one int16. `bits` has 2^7 in the low half; the share of a step goes into the high half.
 */
static inline __attribute__((always_inline)) int32_t
recurrent_dsp_pairs_curve(const int32_t *middle, int32_t *bits, int32_t x)
{
	const int32_t pair = middle[x >> 7];
	int32_t sum;

	__asm__("bfi %0, %1, #16, #7" : "+r"(*bits) : "r"(x));
	__asm__("smlad %0, %1, %2, %3" : "=r"(sum) : "r"(pair), "r"(*bits), "r"(1 << 6));
	return sum >> 7;
}

static inline uint32_t recurrent_dsp_pairs_load(const int16_t *from)
{
	uint32_t pair;

	memcpy(&pair, from, sizeof(pair));
	return pair;
}

static inline void recurrent_dsp_pairs_store(int16_t *to, uint32_t pair)
{
	memcpy(to, &pair, sizeof(pair));
}

/* Two results of recurrent_dsp_pairs_output() as int8. */
static inline uint32_t recurrent_dsp_pairs_bytes(int32_t first, int32_t second)
{
	uint32_t pair = recurrent_dsp_pairs_pair(first, second);

	__asm__("ssat16 %0, #8, %0" : "+r"(pair));
	return pair;
}

/* Two states in units of 2^-15 as int8. */
static inline uint32_t recurrent_dsp_pairs_outputs(const struct scale *to, int32_t first,
						   int32_t second)
{
	return recurrent_dsp_pairs_bytes(recurrent_dsp_pairs_output(to, first),
					 recurrent_dsp_pairs_output(to, second));
}

/* Cells in fours, then what is left, which is copied so that it is four too. */
struct span {
	int16_t *c;
	int16_t *end;       /* of the next states */
	int16_t last[ROWS]; /* of the second span */
};

/* The cells that have no other three. */
static inline int32_t recurrent_dsp_pairs_whole(const struct run *run)
{
	return run->p->hidden & -ROWS;
}

static inline void recurrent_dsp_pairs_first(struct span *span, const struct run *run)
{
	span->c = run->c;
	span->end = run->next + recurrent_dsp_pairs_whole(run);
}

/* From the first span to the second one; false if there is no other. */
static inline bool recurrent_dsp_pairs_more(struct span *span, const struct run *run)
{
	int16_t *const end = run->next + run->hidden;

	if (span->end == end) {
		return false;
	}
	memset(span->last, 0, sizeof(span->last));
	for (int32_t i = recurrent_dsp_pairs_whole(run); i < run->p->hidden; i++) {
		span->last[i % ROWS] = run->c[i];
		__asm__ volatile("" ::: "memory"); /* no memcpy(), which may be nowhere else */
	}
	span->c = span->last;
	span->end = end;
	return true;
}

/* What has become of the second span. */
static inline void recurrent_dsp_pairs_keep(const struct span *span, const struct run *run)
{
	for (int32_t i = recurrent_dsp_pairs_whole(run); i < run->p->hidden; i++) {
		run->c[i] = span->last[i % ROWS];
		__asm__ volatile("" ::: "memory");
	}
}

#endif /* TINYML_RECURRENT_DSP_PAIRS_S8_H_ */
