/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include <tinyml/maths.h>

#include "mel.h"
#include "mel_tables.h"

#define POINTS       (MEL_SAMPLES / 2) /* of the complex transform */
#define PRE_EMPHASIS 0.96875f          /* 1 - 1/32 */
#define LEAST_POWER  1.0e-30f
#define DECIBELS     4.342944819f /* 10 / ln 10 */
#define OFFSET       52.0f
#define RANGE        64.0f

static int16_t heard[MEL_SAMPLES];
static float before;            /* the sample before the first of heard */
static float work[MEL_SAMPLES]; /* POINTS complex numbers */
static float power[POINTS + 1];

void mel_reset(void)
{
	memset(heard, 0, sizeof(heard));
	before = 0.0f;
}

static void window(void)
{
	float last = before;

	for (uint32_t i = 0; i < MEL_SAMPLES; i++) {
		const float sample = (float)heard[i] / 32768.0f;

		work[i] = (sample - PRE_EMPHASIS * last) * mel_window[i];
		last = sample;
	}
}

/* Exchange numbers whose positions are each other's bits in reverse. */
static void reorder(void)
{
	for (uint32_t i = 0, reversed = 0; i < POINTS; i++) {
		if (i < reversed) {
			for (uint32_t part = 0; part < 2; part++) {
				const float kept = work[2 * i + part];

				work[2 * i + part] = work[2 * reversed + part];
				work[2 * reversed + part] = kept;
			}
		}
		uint32_t bit = POINTS / 2;

		while ((reversed & bit) != 0) {
			reversed ^= bit;
			bit /= 2;
		}
		reversed |= bit;
	}
}

/* The transform of POINTS complex numbers, in place. mel_turn: cosines and sines of MEL_SAMPLES. */
static void transform(void)
{
	reorder();
	for (uint32_t half = 1; half < POINTS; half *= 2) {
		const uint32_t step = MEL_SAMPLES / (2 * half);

		for (uint32_t k = 0; k < half; k++) {
			const float c = mel_turn[2 * k * step];
			const float s = mel_turn[2 * k * step + 1];

			for (uint32_t i = k; i < POINTS; i += 2 * half) {
				float *const a = &work[2 * i];
				float *const b = &work[2 * (i + half)];
				const float real = b[0] * c + b[1] * s;
				const float imaginary = b[1] * c - b[0] * s;

				b[0] = a[0] - real;
				b[1] = a[1] - imaginary;
				a[0] += real;
				a[1] += imaginary;
			}
		}
	}
}

/* The power of the bins of a real signal whose even and odd samples were one complex number each.
 */
static void spectrum(void)
{
	for (uint32_t k = 0; k <= POINTS; k++) {
		const float *const z = &work[2 * (k % POINTS)];
		const float *const y = &work[2 * ((POINTS - k) % POINTS)];
		const float even_real = (z[0] + y[0]) / 2, even_imaginary = (z[1] - y[1]) / 2;
		const float odd_real = (z[1] + y[1]) / 2, odd_imaginary = (y[0] - z[0]) / 2;
		const float c = k < POINTS ? mel_turn[2 * k] : -1.0f;
		const float s = k < POINTS ? mel_turn[2 * k + 1] : 0.0f;
		const float real = even_real + odd_real * c + odd_imaginary * s;
		const float imaginary = even_imaginary + odd_imaginary * c - odd_real * s;

		power[k] = (real * real + imaginary * imaginary) / (float)MEL_SAMPLES;
	}
}

void mel_row(const int16_t *samples, float *row)
{
	const float *weight = mel_weights;

	before = (float)heard[MEL_STEP - 1] / 32768.0f;
	memmove(heard, heard + MEL_STEP, MEL_STEP * sizeof(heard[0]));
	memcpy(heard + MEL_STEP, samples, MEL_STEP * sizeof(heard[0]));
	window();
	transform();
	spectrum();
	for (uint32_t band = 0; band < MEL_BANDS; band++) {
		float sum = 0.0f;
		float value;

		for (uint32_t i = 0; i < mel_counts[band]; i++) {
			sum += power[mel_firsts[band] + i] * *weight++;
		}
		value = DECIBELS * tinyml_logf(sum > LEAST_POWER ? sum : LEAST_POWER);
		value = (value + OFFSET) / RANGE;
		row[band] = value < 0.0f ? 0.0f : (value > 1.0f ? 1.0f : value);
	}
}
