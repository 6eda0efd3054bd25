/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/maths.h>
#include <tinyml/mfcc.h>

#define LEAST_POWER  1.0e-10f
#define OFFSET_POWER 1.0e-6f
#define DECIBELS     4.342944819f /* 10 / ln 10 */

static void mfcc_weigh(const struct tinyml_mfcc_f32 *p, const int16_t *ring, uint32_t oldest,
		       float *work)
{
	const uint32_t samples = 2u * p->fft.points;
	const int16_t *const end = ring + samples;
	const int16_t *x = ring + oldest;

	for (uint32_t i = 0; i < samples; i++) {
		work[2u * p->fft.places[i / 2u] + (i & 1u)] = (float)*x * p->window[i];
		x = x + 1 == end ? ring : x + 1;
	}
}

void tinyml_mfcc_f32(const struct tinyml_mfcc_f32 *p, const int16_t *ring, uint32_t oldest,
		     float *work, float *mels, float *row)
{
	const float *weight = p->weights;
	const float *cosine = p->cosines;

	mfcc_weigh(p, ring, oldest, work);
	tinyml_fft_half_placed_f32(&p->fft, work);
	for (int32_t i = 0; i <= p->fft.points; i++) {
		work[i] = work[2 * i] * work[2 * i] + work[2 * i + 1] * work[2 * i + 1];
	}
	for (int32_t band = 0; band < p->mels; band++) {
		const float *power = work + p->firsts[band];
		float sum = 0.0f;

		for (int32_t i = 0; i < p->counts[band]; i++) {
			sum += *power++ * *weight++;
		}
		mels[band] = p->decibels
				     ? DECIBELS * tinyml_logf(sum > LEAST_POWER ? sum : LEAST_POWER)
				     : tinyml_logf(sum + OFFSET_POWER);
	}
	if (p->coefficients == 0) {
		for (int32_t band = 0; band < p->mels; band++) {
			row[band] = mels[band];
		}
	}
	for (int32_t k = 0; k < p->coefficients; k++) {
		float sum = 0.0f;

		for (int32_t band = 0; band < p->mels; band++) {
			sum += mels[band] * *cosine++;
		}
		row[k] = sum;
	}
}
