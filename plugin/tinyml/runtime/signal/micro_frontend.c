/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/tinyml.h>
#include <tinyml/bands.h>
#include <tinyml/fft.h>
#include <tinyml/micro_frontend.h>

#include "band_arithmetic.h"
#include "fft_s16.h"

#define WINDOW_BITS    12
#define SMOOTHING_BITS 14
#define ONE            (1u << SMOOTHING_BITS)

/* The weighted samples as complex numbers, in the order in which the FFT takes them. Returns the
 * largest absolute value, of which -32768 has none. */
static int32_t micro_frontend_weigh(const struct tinyml_micro_frontend *p, const int16_t *ring,
				    uint32_t oldest, uint32_t *work)
{
	const int16_t *const end = ring + p->window_samples;
	const int16_t *x = ring + oldest;
	const uint32_t pairs = p->window_samples / 2u;
	int32_t largest = 0;
	uint32_t n = 0;

	for (; n < p->fft / 2u; n++) {
		int32_t parts[2] = {0, 0};
		const uint32_t count = n < pairs ? 2 : n == pairs ? p->window_samples & 1u : 0;

		for (uint32_t i = 0; i < count; i++) {
			const int32_t value = (*x * p->window[2 * n + i]) >> WINDOW_BITS;
			const int32_t size = (int16_t)(value < 0 ? -value : value);

			parts[i] = value;
			largest = size > largest ? size : largest;
			x = x + 1 == end ? ring : x + 1;
		}
		work[p->places[n]] = tinyml_pair(parts[0], parts[1]);
	}
	return largest;
}

static uint32_t micro_frontend_energy(int32_t re, int32_t im)
{
	re = (int16_t)(re >> 1);
	im = (int16_t)(im >> 1);
	return (uint32_t)(re * re) + (uint32_t)(im * im);
}

/* From the transform of pairs of samples to the energies of the real signal's spectrum, in place:
 * bins k and points - k come from the same two numbers. */
static void micro_frontend_energies(uint32_t *z, uint32_t points, const uint32_t *separation)
{
	for (uint32_t k = 1; k <= points / 2; k++) {
		uint32_t even, odd;

		tinyml_fft_split(z[k], z[points - k], separation[k - 1], &even, &odd);

		const int32_t er = tinyml_pair_re(even), ei = tinyml_pair_im(even);
		const int32_t pr = tinyml_pair_re(odd), pi = tinyml_pair_im(odd);

		z[k] = micro_frontend_energy(er + pr, ei + pi);
		/* The last one counts in the middle. */
		z[points - k] = micro_frontend_energy(er - pr, pi - ei);
	}
}

static uint32_t micro_frontend_logarithm(const struct tinyml_micro_frontend *p, uint32_t signal)
{
	const int32_t up = p->correction_bits;
	const uint32_t x = up >= 0 ? signal << up : signal >> -up;

	return tinyml_band_log(p->curve, x, 1u << p->log_shift);
}

void tinyml_micro_frontend(const struct tinyml_micro_frontend *p, const int16_t *ring,
			   uint32_t oldest, uint32_t *work, uint32_t *noise, uint16_t *row)
{
	const uint32_t points = p->fft / 2u;
	const int32_t shift =
		15 - tinyml_bits_of((uint32_t)micro_frontend_weigh(p, ring, oldest, work));
	const struct tinyml_smoothing smoothing = {
		.shares = {p->even_smoothing, p->odd_smoothing},
		.rests = {ONE - p->even_smoothing, ONE - p->odd_smoothing},
		.least = p->min_signal,
		.bits = SMOOTHING_BITS,
		.noise_bits = p->noise_bits,
	};

	tinyml_fft_stages_s16(work, points, p->turn, shift);
	micro_frontend_energies(work, points, p->separation);

	const uint32_t *bin = work + p->first_bin;
	const uint16_t *share = p->shares;
	uint64_t behind = 0;

	for (uint32_t centre = 0; centre <= p->channels; centre++) {
		uint64_t ahead = 0;

		for (uint32_t i = 0; i < p->widths[centre]; i++) {
			behind += (uint64_t)*bin * share[0];
			ahead += (uint64_t)*bin * share[1];
			bin++;
			share += 2;
		}
		if (centre > 0) {
			const uint32_t channel = centre - 1;
			uint32_t value = tinyml_band_root(behind) >> shift;

			value = tinyml_band_denoised(&smoothing, channel, value, &noise[channel]);
			value = p->pcan ? tinyml_band_gain(p->gains, p->gain_shift, value,
							   noise[channel])
					: value;
			value = p->log ? micro_frontend_logarithm(p, value) : value;
			row[channel] = (uint16_t)(value < 0xFFFFu ? value : 0xFFFFu);
		}
		behind = ahead;
	}
}
