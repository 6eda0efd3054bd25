/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include "sums_f16.h"

/* Both define tinyml_narrow_f16() and tinyml_some_f16(). */
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "sums_mve_f16.h"
#else
#include "sums_exact_f16.h"
#endif

void tinyml_runs_f16(const struct tinyml_runs_f16 *r, const float *x, uint16_t *y)
{
	tinyml_narrow_f16(r, x, y);
}

void tinyml_sums_f16(const struct tinyml_sums_f16 *s, const uint16_t *x0, const uint16_t *x1,
		     float *y0, float *y1)
{
	const uint16_t *w = s->weights;
	int32_t done = 0;

	while (done < s->filters) {
		const int32_t left = s->filters - done;
		const int32_t together = left >= 16 ? 16 : left >= 8 ? 8 : left;
		const float *const bias = s->bias != NULL ? &s->bias[done] : NULL;

		tinyml_some_f16(together, s->count, w, bias, x0, x1, &y0[done],
				x1 != NULL ? &y1[done] : NULL);
		w += together * s->count;
		done += together;
	}
}

void tinyml_rows_f16(const struct tinyml_sums_f16 *s, const float *x, float *y, int32_t rows,
		     bool from_the_end, uint16_t *halves)
{
	const int32_t other = (s->count + 1) & ~1;
	struct tinyml_runs_f16 runs = {2, s->count, s->count, other};

	for (int32_t done = 0; done < rows; done += runs.rows) {
		int32_t row = done;
		float *at;

		runs.rows = rows - done > 1 ? 2 : 1;
		if (from_the_end) {
			row = rows - done - runs.rows;
		}
		at = &y[row * s->filters];
		tinyml_runs_f16(&runs, &x[row * s->count], halves);
		tinyml_sums_f16(s, halves, runs.rows == 2 ? &halves[other] : NULL, at,
				&at[s->filters]);
	}
}
