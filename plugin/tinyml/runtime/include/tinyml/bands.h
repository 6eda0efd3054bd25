/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Operators on the bands of a spectrum, in integers, as TensorFlow Lite Micro defines them. */

#ifndef TINYML_BANDS_H_
#define TINYML_BANDS_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A bank of `bands` filters. Each bin counts for the band that ends there and for the next one. */
struct tinyml_filter_bank {
	const uint16_t *falling; /* weights for the band that ends */
	const uint16_t *rising;  /* weights for the next one */
	const uint16_t *bins;    /* bands + 1: the first bin */
	const uint16_t *weights; /* bands + 1: the first weight */
	const uint16_t *widths;  /* bands + 1: how many */
	uint16_t bands;
};

/** @param y the weighted sum of each band */
void tinyml_filter_bank(const struct tinyml_filter_bank *p, const uint32_t *x, uint64_t *y);

/** Square roots, rounded, then shifted to the right. */
void tinyml_band_roots(const uint64_t *x, uint32_t bands, int32_t shift, uint32_t *y);

/** How noise is followed. The first of a pair is for even bands, the second for odd ones. */
struct tinyml_smoothing {
	uint32_t shares[2]; /* of a new value in the estimate */
	uint32_t rests[2];  /* of the estimate before */
	uint32_t least;     /* share of the signal that is left at least */
	uint8_t bits;       /* of all shares */
	uint8_t noise_bits; /* that an estimate has more than the signal */
	bool clamps;        /* the estimate does not exceed the signal */
};

/** Take an estimate of the noise away. `noise` and `next` may be the same. */
void tinyml_noise_reduction(const struct tinyml_smoothing *p, uint32_t bands, const uint32_t *x,
			    const uint32_t *noise, uint32_t *y, uint32_t *next);

/** Gain control: divide by a power of the noise. @param gains 33 parabolas, by bits of the noise */
void tinyml_pcan(const int16_t *gains, uint32_t shift, uint32_t bands, const uint32_t *x,
		 const uint32_t *noise, uint32_t *y);

/** Natural logarithms of x << up, times `scale`. @param curve 130 values of log2(1 + x) - x */
void tinyml_band_logs(const uint16_t *curve, uint32_t up, uint32_t scale, uint32_t bands,
		      const uint32_t *x, int16_t *y);

#ifdef __cplusplus
}
#endif

#endif /* TINYML_BANDS_H_ */
