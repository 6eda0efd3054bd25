/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/** Complex numbers of two int16 in one word, the real part in the lower half. Sums wrap. */

#ifndef TINYML_SIGNAL_FFT_S16_H_
#define TINYML_SIGNAL_FFT_S16_H_

#include <stdint.h>

#include <tinyml/tinyml.h>

#if TINYML_CORE_DSP
#include <arm_acle.h>
#endif

#define TINYML_FFT_ROUND 0x4000

static inline int32_t tinyml_pair_re(uint32_t z)
{
	return (int16_t)(z & 0xFFFFu);
}

static inline int32_t tinyml_pair_im(uint32_t z)
{
	return (int16_t)(z >> 16);
}

static inline uint32_t tinyml_pair(int32_t re, int32_t im)
{
	return ((uint32_t)re & 0xFFFFu) | (uint32_t)im << 16;
}

/** Two numbers with 15 fraction bits too many, as a pair. */
static inline uint32_t tinyml_pair_shifted(int32_t re, int32_t im)
{
	return ((uint32_t)(re >> 15) & 0xFFFFu) | (((uint32_t)im << 1) & 0xFFFF0000u);
}

/** Both parts times a factor with 15 fraction bits. */
static inline uint32_t tinyml_pair_scaled(uint32_t z, int32_t factor)
{
	return tinyml_pair_shifted(tinyml_pair_re(z) * factor + TINYML_FFT_ROUND,
				   tinyml_pair_im(z) * factor + TINYML_FFT_ROUND);
}

#if TINYML_CORE_DSP

static inline uint32_t tinyml_pair_times(uint32_t a, uint32_t b)
{
	const int16x2_t x = (int16x2_t)a;
	const int16x2_t y = (int16x2_t)b;

	return tinyml_pair_shifted(__smlsd(x, y, TINYML_FFT_ROUND),
				   __smladx(x, y, TINYML_FFT_ROUND));
}

static inline uint32_t tinyml_pair_add(uint32_t a, uint32_t b)
{
	return (uint32_t)__sadd16((int16x2_t)a, (int16x2_t)b);
}

static inline uint32_t tinyml_pair_sub(uint32_t a, uint32_t b)
{
	return (uint32_t)__ssub16((int16x2_t)a, (int16x2_t)b);
}

/** a - i b */
static inline uint32_t tinyml_pair_sub_i(uint32_t a, uint32_t b)
{
	return (uint32_t)__ssax((int16x2_t)a, (int16x2_t)b);
}

/** a + i b */
static inline uint32_t tinyml_pair_add_i(uint32_t a, uint32_t b)
{
	return (uint32_t)__sasx((int16x2_t)a, (int16x2_t)b);
}

#else

static inline uint32_t tinyml_pair_times(uint32_t a, uint32_t b)
{
	const int32_t ar = tinyml_pair_re(a), ai = tinyml_pair_im(a);
	const int32_t br = tinyml_pair_re(b), bi = tinyml_pair_im(b);

	return tinyml_pair_shifted(ar * br - ai * bi + TINYML_FFT_ROUND,
				   ar * bi + ai * br + TINYML_FFT_ROUND);
}

static inline uint32_t tinyml_pair_add(uint32_t a, uint32_t b)
{
	return ((a + b) & 0xFFFFu) | ((a & 0xFFFF0000u) + (b & 0xFFFF0000u));
}

static inline uint32_t tinyml_pair_sub(uint32_t a, uint32_t b)
{
	return ((a - b) & 0xFFFFu) | ((a & 0xFFFF0000u) - (b & 0xFFFF0000u));
}

/** a - i b */
static inline uint32_t tinyml_pair_sub_i(uint32_t a, uint32_t b)
{
	return ((a + (b >> 16)) & 0xFFFFu) | ((a & 0xFFFF0000u) - (b << 16));
}

/** a + i b */
static inline uint32_t tinyml_pair_add_i(uint32_t a, uint32_t b)
{
	return ((a - (b >> 16)) & 0xFFFFu) | ((a & 0xFFFF0000u) + (b << 16));
}

#endif

/** A number of the transform of sample pairs, and the one at its mirror place: even and odd part of
 * the real signal's spectrum, times 2. */
static inline void tinyml_fft_split(uint32_t z, uint32_t mirror, uint32_t factor, uint32_t *even,
				    uint32_t *odd)
{
	const uint32_t conjugate = tinyml_pair(tinyml_pair_re(mirror), -tinyml_pair_im(mirror));
	const uint32_t near = tinyml_pair_scaled(z, 32767 / 2);
	const uint32_t far = tinyml_pair_scaled(conjugate, 32767 / 2);

	*even = tinyml_pair_add(near, far);
	*odd = tinyml_pair_times(tinyml_pair_sub(near, far), factor);
}

#endif /* TINYML_SIGNAL_FFT_S16_H_ */
