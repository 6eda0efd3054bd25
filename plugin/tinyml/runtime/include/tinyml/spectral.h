/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Statistics and band powers of vibrations. The compiler makes the tables for `frontend: {kind:
 * spectral}`. */

#ifndef TINYML_SPECTRAL_H_
#define TINYML_SPECTRAL_H_

#include <stdbool.h>
#include <stdint.h>

#include <tinyml/fft.h>

#ifdef __cplusplus
extern "C" {
#endif

enum tinyml_statistic {
	TINYML_MEAN,
	TINYML_RMS,
	TINYML_STD,
	TINYML_SKEWNESS,
	TINYML_KURTOSIS,
	TINYML_PEAK,
};

struct tinyml_spectral_f32 {
	struct tinyml_fft_f32 fft; /* of half as many points as there are samples */
	const float *window;       /* a weight for each sample; scaled so that squares are powers */
	const uint16_t *edges;     /* of each band: its first bin, and the one after its last */
	const uint8_t *statistics; /* enum tinyml_statistic */
	uint16_t samples;
	uint16_t axes;
	uint16_t statistic_count;
	uint16_t band_count;
	bool log; /* log10 of powers */
};

/**
 * Compute one row of features: for each axis its statistics, then its bands.
 *
 * @param ring   samples * axes values, a ring
 * @param oldest where in the ring the window begins, in samples
 * @param work   samples + 2 numbers of working memory; not used without bands
 */
void tinyml_spectral_f32(const struct tinyml_spectral_f32 *p, const float *ring, uint32_t oldest,
			 float *work, float *row);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_SPECTRAL_H_ */
