/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* From the sums of a group to its gates, in plain C. */

#ifndef TINYML_RECURRENT_SCALED_S8_H_
#define TINYML_RECURRENT_SCALED_S8_H_

#include <tinyml/fixed_point.h>

#include "recurrent_group_s8.h"

static inline int32_t recurrent_scaled_high(int32_t a, int32_t left, int32_t b)
{
	return (int32_t)(((int64_t)(int32_t)((uint32_t)a << left) * b) >> 32);
}

/* from_x and from_h are sums before. */
static inline void recurrent_scaled_gates(struct group *group)
{
	const int32_t *row = group->rows;

	for (int32_t i = 0; i < ROWS; i++, row++) {
		const int32_t x =
			recurrent_scaled_high(group->from_x[i], group->x_left, row[ROWS]) + row[0];
		const int32_t h =
			recurrent_scaled_high(group->from_h[i], group->h_left, row[2 * ROWS]);

		group->from_x[i] = x;
		group->from_h[i] = h;
		group->gates[i] = tinyml_clamp((x + h) >> 3, INT16_MIN, INT16_MAX);
	}
	group->rows += 3 * ROWS;
}

#endif /* TINYML_RECURRENT_SCALED_S8_H_ */
