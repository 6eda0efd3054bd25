/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* From the sums of a group to what its gates are functions of, in plain C. */

#ifndef TINYML_RECURRENT_SCALED_S8_H_
#define TINYML_RECURRENT_SCALED_S8_H_

#include <tinyml/fixed_point.h>

#include "recurrent_group_s8.h"

static inline int32_t recurrent_scaled_high(int32_t a, int32_t left, int32_t b)
{
	return (int32_t)(((int64_t)(int32_t)((uint32_t)a << left) * b) >> 32);
}

/* from_x are sums before; from_h are sums, to which what the input adds is added. */
static inline void recurrent_scaled_sums(struct group *group, int32_t *from_h)
{
	const int32_t *row = group->rows;

	for (int32_t i = 0; i < ROWS; i++, row++) {
		const int32_t x =
			recurrent_scaled_high(group->from_x[i], group->x_left, row[ROWS]) + row[0];

		group->from_x[i] = x;
		from_h[i] = recurrent_scaled_high(from_h[i], group->h_left, row[2 * ROWS]) + x;
	}
	group->rows += 3 * ROWS;
}

#endif /* TINYML_RECURRENT_SCALED_S8_H_ */
