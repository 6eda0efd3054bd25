/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** What checks of loops inside one another share. */

#ifndef TINYML_PLAYER_NEST_H_
#define TINYML_PLAYER_NEST_H_

#include <tinyml/play_records.h>

/** Elements that the loops visit; it is wrong if one of them is not entered. */
uint32_t tinyml_check_loops(struct tinyml_check *check, const uint32_t *extents);

/** Bytes from the beginning of an operand to the end of what is reached with these steps, from
 * `start` on, all in bytes; it is wrong if something before the beginning is. */
uint32_t tinyml_check_span(struct tinyml_check *check, const uint32_t *extents,
			   const int32_t *steps, uint32_t start, uint32_t bytes);

/** The same for elements of `size` bytes and steps in elements. */
uint32_t tinyml_check_elements(struct tinyml_check *check, const uint32_t *extents,
			       const int32_t *steps, uint32_t size);

/** The next place of loops inside one another: an offset, from that of this turn on. `turn` begins
 * with zeros. */
static inline uint32_t tinyml_play_next(uint32_t turn[TINYML_PLAY_LOOPS], const uint32_t *extents,
					const int32_t *steps, uint32_t at)
{
	for (int i = TINYML_PLAY_LOOPS - 1; i >= 0; i--) {
		at += (uint32_t)steps[i];
		if (++turn[i] < extents[i]) {
			break;
		}
		at -= (uint32_t)steps[i] * extents[i];
		turn[i] = 0;
	}
	return at;
}

/** Sums and products that wrap, whatever a record says. */
static inline int32_t tinyml_play_plus(int32_t a, int32_t b)
{
	return (int32_t)((uint32_t)a + (uint32_t)b);
}

static inline int32_t tinyml_play_times(int32_t a, int32_t b)
{
	return (int32_t)((uint32_t)a * (uint32_t)b);
}

/** What tinyml_rescale() and the functions beside it can be given. */
static inline bool tinyml_check_factor(int32_t multiplier, int32_t shift)
{
	return multiplier >= 0 && shift >= -31 && shift <= 30;
}

#endif /* TINYML_PLAYER_NEST_H_ */
