/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/tinyml.h>
#include <tinyml/bands.h>

#include "band_arithmetic.h"

void tinyml_filter_bank(const struct tinyml_filter_bank *p, const uint32_t *x, uint64_t *y)
{
	uint64_t behind = 0;

	for (uint32_t centre = 0; centre <= p->bands; centre++) {
		const uint32_t *bin = x + p->bins[centre];
		const uint16_t *falling = p->falling + p->weights[centre];
		const uint16_t *rising = p->rising + p->weights[centre];
		uint64_t ahead = 0;

		for (uint32_t i = 0; i < p->widths[centre]; i++) {
			behind += (uint64_t)bin[i] * falling[i];
			ahead += (uint64_t)bin[i] * rising[i];
		}
		if (centre > 0) { /* there is no band before the first centre */
			y[centre - 1] = behind;
		}
		behind = ahead;
	}
}

void tinyml_band_roots(const uint64_t *x, uint32_t bands, int32_t shift, uint32_t *y)
{
	for (uint32_t i = 0; i < bands; i++) {
		y[i] = tinyml_band_root(x[i]) >> shift;
	}
}

void tinyml_noise_reduction(const struct tinyml_smoothing *p, uint32_t bands, const uint32_t *x,
			    const uint32_t *noise, uint32_t *y, uint32_t *next)
{
	for (uint32_t i = 0; i < bands; i++) {
		uint32_t estimate = noise[i];

		y[i] = tinyml_band_denoised(p, i, x[i], &estimate);
		next[i] = estimate;
	}
}

void tinyml_pcan(const int16_t *gains, uint32_t shift, uint32_t bands, const uint32_t *x,
		 const uint32_t *noise, uint32_t *y)
{
	for (uint32_t i = 0; i < bands; i++) {
		y[i] = tinyml_band_gain(gains, shift, x[i], noise[i]);
	}
}

void tinyml_band_logs(const uint16_t *curve, uint32_t up, uint32_t scale, uint32_t bands,
		      const uint32_t *x, int16_t *y)
{
	for (uint32_t i = 0; i < bands; i++) {
		const uint32_t value = tinyml_band_log(curve, x[i] << up, scale);

		y[i] = (int16_t)(value < INT16_MAX ? value : INT16_MAX);
	}
}
