/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "nest.h"

uint32_t tinyml_check_loops(struct tinyml_check *check, const uint32_t *extents)
{
	uint32_t count = 1;

	for (int i = 0; i < TINYML_PLAY_LOOPS; i++) {
		tinyml_check_that(check, extents[i] > 0u);
		count = tinyml_check_times(count, extents[i]);
	}
	return count;
}

uint32_t tinyml_check_span(struct tinyml_check *check, const uint32_t *extents,
			   const int32_t *steps, uint32_t start, uint32_t bytes)
{
	uint32_t before = 0, end = tinyml_check_plus(start, bytes);

	for (int i = 0; i < TINYML_PLAY_LOOPS; i++) {
		const uint32_t turns = extents[i] - 1u;

		if (steps[i] < 0) {
			before = tinyml_check_plus(
				before, tinyml_check_times(turns, 0u - (uint32_t)steps[i]));
		} else {
			end = tinyml_check_plus(end, tinyml_check_times(turns, (uint32_t)steps[i]));
		}
	}
	tinyml_check_that(check, before <= start);
	return end;
}

uint32_t tinyml_check_elements(struct tinyml_check *check, const uint32_t *extents,
			       const int32_t *steps, uint32_t size)
{
	return tinyml_check_times(tinyml_check_span(check, extents, steps, 0, 1), size);
}
