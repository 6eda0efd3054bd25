/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Fourier transforms of constant length in float and int16. The compiler makes the tables. */

#ifndef TINYML_FFT_H_
#define TINYML_FFT_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tinyml_fft_f32 {
	const uint16_t
		*places; /* where each of `points` complex numbers goes before the first stage */
	const uint8_t *radices;  /* of the stages, 0 after the last */
	const float *twiddles;   /* pairs, in the order of their use */
	const float *roots;      /* pairs: one turn for each radix above 5, smallest first */
	const float *separation; /* pairs: for the spectrum of a real signal */
	float sign;              /* of the exponent: -1 forward, 1 back */
	uint16_t points;
};

/** y = transform of `count` complex numbers (and zeros up to `points`); not in place. */
void tinyml_fft_complex_f32(const struct tinyml_fft_f32 *p, const float *x, int32_t count,
			    float *y);

/** The same for `count` real numbers. */
void tinyml_fft_of_real_f32(const struct tinyml_fft_f32 *p, const float *x, int32_t count,
			    float *y);

/**
 * Half a spectrum of a real signal of 2 * points samples: y has points + 1 complex numbers. `count`
 * samples are given, the rest is zero.
 */
void tinyml_fft_half_f32(const struct tinyml_fft_f32 *p, const float *x, int32_t count, float *y);

/** The same, in place: pair i of the samples is complex number places[i] of z already. */
void tinyml_fft_half_placed_f32(const struct tinyml_fft_f32 *p, float *z);

/** Real signals of 2 * points samples, a power of two, in int16. Results are scaled by 1/2points.
 */
struct tinyml_fft_s16 {
	const uint16_t *places;     /* where each of `points` complex numbers goes */
	const uint32_t *turn;       /* three quarters of a turn in `points` steps: int16 pairs */
	const uint32_t *separation; /* points / 2 pairs, for the spectrum of a real signal */
	uint16_t points;
};

/**
 * Half a spectrum: y has points + 1 complex numbers. `samples` are given, the rest is zero.
 *
 * @param work memory for `points` words
 */
void tinyml_rfft_s16(const struct tinyml_fft_s16 *p, const int16_t *x, uint32_t samples,
		     uint32_t *work, int16_t *y);

/** Back from points + 1 complex numbers to 2 * points samples. */
void tinyml_irfft_s16(const struct tinyml_fft_s16 *p, const int16_t *x, uint32_t *work, int16_t *y);

/** All stages of a transform in place, whose numbers (int16 pairs) are where `places` puts them,
 * enlarged by `shift` bits before the first stage. */
void tinyml_fft_stages_s16(uint32_t *z, uint32_t points, const uint32_t *turn, int32_t shift);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_FFT_H_ */
