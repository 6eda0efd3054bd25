/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Mel spectra and MFCC in float. The compiler makes the tables for `frontend: {kind: mfcc}`. */

#ifndef TINYML_MFCC_H_
#define TINYML_MFCC_H_

#include <stdbool.h>
#include <stdint.h>

#include <tinyml/fft.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tinyml_mfcc_f32 {
	struct tinyml_fft_f32 fft; /* of half as many points as a frame has samples */
	const float *window;       /* a weight for each sample */
	const uint16_t *firsts;    /* of each band: its first bin */
	const uint16_t *counts;    /* of each band: how many bins it has */
	const float *weights;      /* of the bins, band by band */
	const float *cosines;      /* (coefficients, mels), or NULL */
	uint16_t mels;
	uint16_t coefficients; /* 0: the row is the mel spectrum */
	bool decibels;         /* or natural logarithms */
};

/**
 * Compute one row of features.
 *
 * @param ring   2 * fft.points samples, a ring
 * @param oldest where in the ring the frame begins
 * @param work   2 * fft.points + 2 numbers of working memory
 * @param mels   working memory: one number for each band
 * @param row    coefficients, or mels if there are none
 */
void tinyml_mfcc_f32(const struct tinyml_mfcc_f32 *p, const int16_t *ring, uint32_t oldest,
		     float *work, float *mels, float *row);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_MFCC_H_ */
