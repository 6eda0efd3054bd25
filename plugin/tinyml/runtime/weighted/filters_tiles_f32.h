/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Defines tinyml_filters_f32() or, in a file with TINYML_HALF_WEIGHTS, tinyml_filters_f32_f16().
 */

#ifndef TINYML_FILTERS_TILES_F32_H_
#define TINYML_FILTERS_TILES_F32_H_

#include <stddef.h>

#include "filters_f32.h"
#include "tile_f32.h"

static const float filters_tiles_zeros[8];

/* Some filters with all windows. */
static inline __attribute__((always_inline)) void
filters_tiles_some(const struct tinyml_filters_f32 *f, struct tinyml_tile_f32 *t,
		   const tinyml_weight_f32 *w, const float *x, float *y, int32_t times, bool two,
		   int32_t together)
{
	t->w_skip = f->w_skip * together * (int32_t)sizeof(tinyml_weight_f32);
	w += f->first * together;
	for (; times > 0; times--, x += f->x_next, y += f->y_next) {
		float *const other = &y[f->y_other];

		if (f->go_on) {
			t->start0 = y;
			t->start1 = other;
		}
		if (two) {
			tinyml_tile_2_f32(t, together, x, &x[f->x_other], w, y, other);
		} else {
			tinyml_tile_1_f32(t, together, x, w, y);
		}
	}
}

void TINYML_FILTERS(const struct tinyml_filters_f32 *f, const float *x, float *y, int32_t times,
		    bool two)
{
	struct tinyml_tile_f32 t = {
		.rows = f->rows,
		.count = f->count,
		.x_skip = f->x_skip * (int32_t)sizeof(float),
		.start0 = filters_tiles_zeros,
		.start1 = filters_tiles_zeros,
		.bias = filters_tiles_zeros,
	};
	int32_t done = 0;

	while (done < f->filters) {
		const int32_t left = f->filters - done;
		const tinyml_weight_f32 *const w = &f->weights[f->filter_size * done];

		if (f->bias != NULL) {
			t.bias = &f->bias[done];
		}
		if (left >= 8) {
			filters_tiles_some(f, &t, w, x, &y[done], times, two, 8);
			done += 8;
		} else if (left >= 4) {
			filters_tiles_some(f, &t, w, x, &y[done], times, two, 4);
			done += 4;
		} else {
			filters_tiles_some(f, &t, w, x, &y[done], times, two, 1);
			done += 1;
		}
	}
}

#endif /* TINYML_FILTERS_TILES_F32_H_ */
