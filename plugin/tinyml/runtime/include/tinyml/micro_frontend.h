/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/**
 * The audio front end of TensorFlow's micro models in integers: Hann window, FFT, mel filter bank,
 * noise reduction, gain per band, logarithm. The compiler makes the tables for `frontend: {kind:
 * micro}`.
 */

#ifndef TINYML_MICRO_FRONTEND_H_
#define TINYML_MICRO_FRONTEND_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tinyml_micro_frontend {
	const int16_t *window;      /* window_samples weights, in 12 bits */
	const uint16_t *places;     /* where each of fft / 2 complex numbers goes before the FFT */
	const uint32_t *turn;       /* three quarters of a turn in fft / 2 steps: int16 pairs */
	const uint32_t *separation; /* fft / 4 pairs, for the spectrum of a real signal */
	const uint16_t *widths;     /* channels + 1: bins between the centres of two bands */
	const uint16_t
		*shares;       /* for each bin: its share of the band below and above, in 12 bits */
	const int16_t *gains;  /* 33 parabolas, by the number of bits of the noise */
	const uint16_t *curve; /* 130 values: log2(1 + x) - x */
	uint16_t window_samples;
	uint16_t fft;
	uint16_t channels;
	uint16_t first_bin;
	uint16_t even_smoothing; /* 14 bits, as the next two */
	uint16_t odd_smoothing;
	uint16_t min_signal;
	uint8_t noise_bits;
	uint8_t gain_shift;
	uint8_t log_shift;
	int8_t correction_bits;
	bool pcan;
	bool log;
};

/**
 * Compute one row of features.
 *
 * @param ring   window_samples samples, a ring
 * @param oldest where in the ring the window begins
 * @param work   fft / 2 words of working memory
 * @param noise  estimate of the noise in each channel, kept from row to row; zero at first
 * @param row    channels features
 */
void tinyml_micro_frontend(const struct tinyml_micro_frontend *p, const int16_t *ring,
			   uint32_t oldest, uint32_t *work, uint32_t *noise, uint16_t *row);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_MICRO_FRONTEND_H_ */
