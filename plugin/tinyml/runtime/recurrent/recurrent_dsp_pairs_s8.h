/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Two neighbouring cells of a recurrent layer with DSP instructions: a word has the int16 of both.
 */

#ifndef TINYML_RECURRENT_DSP_PAIRS_S8_H_
#define TINYML_RECURRENT_DSP_PAIRS_S8_H_

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

/* The next two. */
static inline uint32_t recurrent_dsp_pairs_load(const int16_t **from)
{
	uint32_t pair;

	__asm__ volatile("ldr %0, [%1], #4" : "=r"(pair), "+r"(*from) : : "memory");
	return pair;
}

static inline void recurrent_dsp_pairs_store(int16_t **to, uint32_t pair)
{
	__asm__ volatile("str %1, [%0], #4" : "+r"(*to) : "r"(pair) : "memory");
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

/* The cells that have no other three: a copy of them, so that they are four. */
static inline void recurrent_dsp_pairs_begin(int16_t *last, const struct run *run)
{
	memset(last, 0, ROWS * sizeof(*last));
	for (int32_t i = run->own.whole; i < run->p->hidden; i++) {
		last[i % ROWS] = run->c[i];
		__asm__ volatile("" ::: "memory"); /* no memcpy(), which may be nowhere else */
	}
}

/* What has become of the copy. */
static inline void recurrent_dsp_pairs_end(const int16_t *last, const struct run *run)
{
	for (int32_t i = run->own.whole; i < run->p->hidden; i++) {
		run->c[i] = last[i % ROWS];
		__asm__ volatile("" ::: "memory");
	}
}

#endif /* TINYML_RECURRENT_DSP_PAIRS_S8_H_ */
