/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Fourier transforms of constant length in float. The compiler makes the tables. */

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

#ifdef __cplusplus
}
#endif

#endif /* TINYML_FFT_H_ */
