/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/maths.h>
#include <tinyml/sample.h>

#define FAR 1.0e6f /* positions beyond this behave the same; it can be converted to an integer */

struct taps {
	int32_t place[4];
	float weight[4];
	int32_t count;
};

/* Reflect a position at the borders until it lies inside the image. */
static float grid_sample_reflect(float v, float low, float high)
{
	const float range = high - low;

	if (range <= 0.0f) {
		return low;
	}
	const bool below = v < low;
	const float beyond = below ? low - v : v - high;

	if (beyond <= 0.0f) {
		return v;
	}
	const float folds = tinyml_floorf(beyond / range);
	const float rest = beyond - folds * range;
	const bool even = tinyml_fmodf(folds, 2.0f) == 0.0f;

	return below == even ? low + rest : high - rest;
}

static void grid_sample_cubic_weights(float t, float *w)
{
	const float a = -0.75f;
	const float d[4] = {t + 1.0f, t, 1.0f - t, 2.0f - t};

	for (int32_t i = 0; i < 4; i++) {
		if (i == 1 || i == 2) {
			w[i] = ((a + 2.0f) * d[i] - (a + 3.0f)) * d[i] * d[i] + 1.0f;
		} else {
			w[i] = ((a * d[i] - 5.0f * a) * d[i] + 8.0f * a) * d[i] - 4.0f * a;
		}
	}
}

/* The taps around a position on one axis. */
static struct taps grid_sample_find_taps(const struct tinyml_grid_sample *p, float n, int32_t size)
{
	const float extent = (float)size;
	const float low = p->align_corners ? 0.0f : -0.5f;
	const float high = p->align_corners ? extent - 1.0f : extent - 0.5f;
	float v = p->align_corners ? (n + 1.0f) / 2.0f * (extent - 1.0f)
				   : ((n + 1.0f) * extent - 1.0f) / 2.0f;
	struct taps taps = {.count = p->taps};

	v = tinyml_bounded(v, -FAR, FAR);
	if (p->taps == 1) {
		v = tinyml_rintf(v);
	}
	if (v < low || v > high) {
		/* cubic: every tap is clamped on its own, as in PyTorch */
		if (p->outside == TINYML_OUTSIDE_BORDER && p->taps != 4) {
			v = tinyml_bounded(v, 0.0f, extent - 1.0f);
		} else if (p->outside == TINYML_OUTSIDE_REFLECTION) {
			v = grid_sample_reflect(v, low, high);
		}
	}
	const float base = p->taps == 1 ? tinyml_truncf(v) : tinyml_floorf(v);
	const float t = v - base;

	taps.weight[0] = 1.0f;
	if (p->taps == 2) {
		taps.weight[0] = 1.0f - t;
		taps.weight[1] = t;
	} else if (p->taps == 4) {
		grid_sample_cubic_weights(t, taps.weight);
	}
	for (int32_t i = 0; i < taps.count; i++) {
		float place = base + (float)i - (p->taps == 4 ? 1.0f : 0.0f);

		if (p->outside == TINYML_OUTSIDE_ZEROS) {
			if (place < 0.0f || place > extent - 1.0f) {
				taps.weight[i] = 0.0f;
			}
		} else if (p->outside == TINYML_OUTSIDE_REFLECTION) {
			place = grid_sample_reflect(place, low, high);
		}
		taps.place[i] = (int32_t)tinyml_bounded(place, 0.0f, extent - 1.0f);
	}
	return taps;
}

static float grid_sample_gather(const struct tinyml_grid_sample *p, const float *plane,
				const struct taps *t)
{
	float sum = 0.0f;

	for (int32_t i = 0; i < t[0].count; i++) {
		for (int32_t j = 0; j < t[1].count; j++) {
			const float *row =
				&plane[(t[0].place[i] * p->in[1] + t[1].place[j]) * p->in[2]];
			const float weight = t[0].weight[i] * t[1].weight[j];

			for (int32_t k = 0; k < t[2].count; k++) {
				sum += weight * t[2].weight[k] * row[t[2].place[k]];
			}
		}
	}
	return sum;
}

void tinyml_grid_sample_f32(const struct tinyml_grid_sample *p, const float *x, const float *grid,
			    float *y)
{
	const int32_t plane = p->in[0] * p->in[1] * p->in[2];

	for (int32_t n = 0; n < p->batches; n++) {
		for (int32_t i = 0; i < p->positions; i++) {
			struct taps taps[3];

			for (int32_t a = 0; a < 3; a++) {
				const struct taps only = {{0}, {1.0f}, 1};

				taps[a] = a < 3 - p->axes
						  ? only
						  : grid_sample_find_taps(p, grid[2 - a], p->in[a]);
			}
			for (int32_t c = 0; c < p->channels; c++) {
				y[c * p->positions + i] =
					grid_sample_gather(p, &x[c * plane], taps);
			}
			grid += p->axes;
		}
		x += p->channels * plane;
		y += p->channels * p->positions;
	}
}
