/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Totals: how often a function is called, or a loop turns, in one call of a kernel, whatever the
 * data. The loops around it may allow far more: a box is compared with up to as many others as can
 * be chosen, but few boxes can meet that many.
 *
 * TINYML_CALLS_OF(f) and TINYML_TURNS_OF(f) define calls_of_f(most) and turns_of_f(most), with
 * which a kernel says the total when it begins. `tinyml bound` finds them in machine code by their
 * names (bounds/parts.py), and believes them. So builds with assertions, like those with
 * sanitizers, count what says TINYML_COUNT(f), and end a program that exceeds its total.
 *
 * A loop of which the turns are counted begins with the turn, not with a condition: `for (;;)`.
 */

#ifndef TINYML_TOTALS_H_
#define TINYML_TOTALS_H_

#include <stdint.h>

#include <tinyml/tinyml.h>

#if defined(TINYML_ASSERTIONS) && TINYML_ASSERTIONS

#define TINYML_TOTAL_(function, totals_name)                                                       \
	static int32_t left_of_##function = -1;                                                    \
	static inline void totals_name(int32_t most)                                               \
	{                                                                                          \
		left_of_##function = most;                                                         \
	}

/* Without a total, it stays below zero. */
#define TINYML_COUNT(function)                                                                     \
	do {                                                                                       \
		TINYML_ASSERT(left_of_##function != 0);                                            \
		left_of_##function -= left_of_##function > 0;                                      \
	} while (0)

/* No total holds: these are not the data for which the last one does, or it is of another call. */
#define TINYML_FORGET_TOTAL(function) (left_of_##function = -1)

#else

#if defined(__arm__) && defined(__GNUC__) && !defined(__clang__)
/* Called, with its operand, although it does nothing. */
#define TINYML_TOTAL_(function, totals_name)                                                       \
	__attribute__((noipa, unused)) static void totals_name(int32_t most)                       \
	{                                                                                          \
		__asm__ volatile("" : : "r"(most));                                                \
	}
#else
#define TINYML_TOTAL_(function, totals_name)                                                       \
	static inline void totals_name(int32_t most)                                               \
	{                                                                                          \
		(void)most;                                                                        \
	}
#endif

#define TINYML_COUNT(function)        ((void)0)
#define TINYML_FORGET_TOTAL(function) ((void)0)

#endif

#define TINYML_CALLS_OF(function) TINYML_TOTAL_(function, calls_of_##function)
#define TINYML_TURNS_OF(function) TINYML_TOTAL_(function, turns_of_##function)

#endif /* TINYML_TOTALS_H_ */
