/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/maths.h>
#include <tinyml/spectral.h>

#define LEAST_POWER    1.0e-12f
#define LEAST_VARIANCE 1.0e-12f /* of the mean square: less is no deviation */

struct moments {
	float first; /* the mean in two parts: one of the values, and how far the mean is from it */
	float from_first;
	float square; /* mean square of the values themselves */
	float second; /* means of powers of the deviation */
	float third;
	float fourth;
	float peak;
};

/* How far a value is from the mean. An offset such as gravity is larger than the deviations, so it
 * is subtracted first, which is exact: of samples that do not move, nothing is left.
 */
static float spectral_deviation(const struct moments *m, float value)
{
	return (value - m->first) - m->from_first;
}

/* The order of samples does not matter here, so the ring is read from its start. */
static struct moments spectral_moments_of(const struct tinyml_spectral_f32 *p, const float *x)
{
	const float count = (float)p->samples;
	struct moments m = {.first = x[0]};

	for (int32_t i = 0; i < p->samples; i++) {
		const float value = x[i * p->axes];
		const float size = tinyml_fabsf(value);

		m.from_first += value - m.first;
		m.square += value * value;
		m.peak = size > m.peak ? size : m.peak;
	}
	m.from_first /= count;
	m.square /= count;
	for (int32_t i = 0; i < p->samples; i++) {
		const float rest = spectral_deviation(&m, x[i * p->axes]);

		m.second += rest * rest;
		m.third += rest * rest * rest;
		m.fourth += rest * rest * (rest * rest);
	}
	m.second /= count;
	m.third /= count;
	m.fourth /= count;
	return m;
}

static float spectral_statistic(const struct moments *m, uint8_t which)
{
	const bool still = m->second <= LEAST_VARIANCE * m->square;

	switch (which) {
	case TINYML_MEAN:
		return m->first + m->from_first;
	case TINYML_RMS:
		return tinyml_sqrtf(m->square);
	case TINYML_STD:
		return tinyml_sqrtf(m->second);
	case TINYML_SKEWNESS:
		return still ? 0.0f : m->third / (m->second * tinyml_sqrtf(m->second));
	case TINYML_KURTOSIS:
		return still ? 0.0f : m->fourth / (m->second * m->second) - 3.0f;
	default:
		return m->peak;
	}
}

static void spectral_bands_of(const struct tinyml_spectral_f32 *p, const float *ring,
			      uint32_t oldest, const struct moments *m, float *work, float *row)
{
	const int32_t last = p->fft.points;

	for (uint32_t i = 0; i < p->samples; i++) {
		const float value = spectral_deviation(m, ring[oldest * p->axes]) * p->window[i];

		work[2u * p->fft.places[i / 2u] + (i & 1u)] = value;
		oldest = oldest + 1 == p->samples ? 0 : oldest + 1;
	}
	tinyml_fft_half_placed_f32(&p->fft, work);
	for (int32_t i = 0; i <= last; i++) {
		const float power = work[2 * i] * work[2 * i] + work[2 * i + 1] * work[2 * i + 1];

		work[i] = i == 0 || i == last ? power : 2.0f * power; /* of both halves */
	}
	for (int32_t band = 0; band < p->band_count; band++) {
		float sum = 0.0f;

		for (int32_t i = p->edges[2 * band]; i < p->edges[2 * band + 1]; i++) {
			sum += work[i];
		}
		row[band] = p->log ? tinyml_log10f(sum > LEAST_POWER ? sum : LEAST_POWER) : sum;
	}
}

void tinyml_spectral_f32(const struct tinyml_spectral_f32 *p, const float *ring, uint32_t oldest,
			 float *work, float *row)
{
	for (uint32_t axis = 0; axis < p->axes; axis++) {
		const struct moments m = spectral_moments_of(p, ring + axis);

		for (uint32_t i = 0; i < p->statistic_count; i++) {
			*row++ = spectral_statistic(&m, p->statistics[i]);
		}
		if (p->band_count > 0) {
			spectral_bands_of(p, ring + axis, oldest, &m, work, row);
			row += p->band_count;
		}
	}
}
