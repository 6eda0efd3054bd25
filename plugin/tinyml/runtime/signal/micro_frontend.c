/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/tinyml.h>
#include <tinyml/micro_frontend.h>

#include "fft_s16.h"

#define WINDOW_BITS      12
#define SMOOTHING_BITS   14
#define PCAN_SIGNAL_BITS 12
#define PCAN_OUTPUT_BITS 6
#define LOG_BITS         16
#define SEGMENT_BITS     9 /* of a fraction with LOG_BITS */
#define LN2              45426u

static int32_t bits_of(uint32_t x)
{
	return x == 0 ? 0 : 32 - __builtin_clz(x);
}

/* The weighted samples as complex numbers, in the order in which the FFT takes them. Returns the
 * largest absolute value, of which -32768 has none. */
static int32_t weigh(const struct tinyml_micro_frontend *p, const int16_t *ring, uint32_t oldest,
		     uint32_t *work)
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

static uint32_t enlarged(uint32_t z, int32_t shift)
{
	const uint32_t low = (z << shift) & 0xFFFFu;

	return low | ((z & 0xFFFF0000u) << shift);
}

/* The first stage, on neighbours, whose factors are all 1. */
static void first_stage(uint32_t *z, uint32_t points, bool fours, int32_t shift)
{
	if (!fours) {
		for (uint32_t *end = z + points; z < end; z += 2) {
			const uint32_t a = tinyml_pair_scaled(enlarged(z[0], shift), 32767 / 2);
			const uint32_t b = tinyml_pair_scaled(enlarged(z[1], shift), 32767 / 2);

			z[0] = tinyml_pair_add(a, b);
			z[1] = tinyml_pair_sub(a, b);
		}
		return;
	}
	for (uint32_t *end = z + points; z < end; z += 4) {
		const uint32_t a = tinyml_pair_scaled(enlarged(z[0], shift), 32767 / 4);
		const uint32_t b = tinyml_pair_scaled(enlarged(z[1], shift), 32767 / 4);
		const uint32_t c = tinyml_pair_scaled(enlarged(z[2], shift), 32767 / 4);
		const uint32_t d = tinyml_pair_scaled(enlarged(z[3], shift), 32767 / 4);
		const uint32_t even = tinyml_pair_add(a, c), odd = tinyml_pair_sub(a, c);
		const uint32_t both = tinyml_pair_add(b, d), across = tinyml_pair_sub(b, d);

		z[0] = tinyml_pair_add(even, both);
		z[1] = tinyml_pair_sub_i(odd, across);
		z[2] = tinyml_pair_sub(even, both);
		z[3] = tinyml_pair_add_i(odd, across);
	}
}

/* A later stage joins four transforms of `width` points. */
static void next_stage(uint32_t *z, uint32_t points, uint32_t width, const uint32_t *turn)
{
	const uint32_t step = points / (4 * width);

	for (uint32_t k = 0; k < width; k++) {
		const uint32_t t1 = turn[k * step], t2 = turn[2 * k * step],
			       t3 = turn[3 * k * step];

		for (uint32_t *p = z + k; p < z + points; p += 4 * width) {
			const uint32_t a = tinyml_pair_scaled(p[0], 32767 / 4);
			const uint32_t b =
				tinyml_pair_times(tinyml_pair_scaled(p[width], 32767 / 4), t1);
			const uint32_t c =
				tinyml_pair_times(tinyml_pair_scaled(p[2 * width], 32767 / 4), t2);
			const uint32_t d =
				tinyml_pair_times(tinyml_pair_scaled(p[3 * width], 32767 / 4), t3);
			const uint32_t even = tinyml_pair_add(a, c), odd = tinyml_pair_sub(a, c);
			const uint32_t both = tinyml_pair_add(b, d), across = tinyml_pair_sub(b, d);

			p[0] = tinyml_pair_add(even, both);
			p[width] = tinyml_pair_sub_i(odd, across);
			p[2 * width] = tinyml_pair_sub(even, both);
			p[3 * width] = tinyml_pair_add_i(odd, across);
		}
	}
}

static uint32_t energy(int32_t re, int32_t im)
{
	re = (int16_t)(re >> 1);
	im = (int16_t)(im >> 1);
	return (uint32_t)(re * re) + (uint32_t)(im * im);
}

/* From the transform of pairs of samples to the energies of the real signal's spectrum, in place:
 * bins k and points - k come from the same two numbers. */
static void energies(uint32_t *z, uint32_t points, const uint32_t *separation)
{
	for (uint32_t k = 1; k <= points / 2; k++) {
		const uint32_t mirror = z[points - k];
		const uint32_t conjugate =
			tinyml_pair(tinyml_pair_re(mirror), -tinyml_pair_im(mirror));
		const uint32_t near = tinyml_pair_scaled(z[k], 32767 / 2);
		const uint32_t far = tinyml_pair_scaled(conjugate, 32767 / 2);
		const uint32_t even = tinyml_pair_add(near, far);
		const uint32_t odd =
			tinyml_pair_times(tinyml_pair_sub(near, far), separation[k - 1]);
		const int32_t er = tinyml_pair_re(even), ei = tinyml_pair_im(even);
		const int32_t pr = tinyml_pair_re(odd), pi = tinyml_pair_im(odd);

		z[k] = energy(er + pr, ei + pi);
		z[points - k] = energy(er - pr, pi - ei); /* last: it counts in the middle */
	}
}

/* floor(sqrt(x)), and what x has more. */
static uint32_t root32(uint32_t x, uint32_t *rest)
{
	uint32_t root = 0;

	for (uint32_t bit = x == 0 ? 0 : UINT32_C(1) << ((bits_of(x) - 1) & ~1); bit != 0;
	     bit >>= 2) {
		const uint32_t trial = root + bit;

		root >>= 1;
		if (x >= trial) {
			x -= trial;
			root += bit;
		}
	}
	*rest = x;
	return root;
}

/* sqrt(x), rounded. The upper half of the digits is a root of 32 bits, the lower half a quotient.
 */
static uint32_t rounded_root(uint64_t x)
{
	uint32_t rest;

	if (x >> 32 == 0) {
		const uint32_t root = root32((uint32_t)x, &rest);

		return rest > root && root != 0xFFFFu ? root + 1 : root;
	}
	const int32_t spare = __builtin_clz((uint32_t)(x >> 32)) & ~1;
	const uint64_t scaled = x << spare; /* its upper word has one of the two highest bits */
	const uint32_t upper = root32((uint32_t)(scaled >> 32), &rest);
	const uint64_t dividend = (uint64_t)rest << 16 | ((uint32_t)scaled >> 16);
	/* The rest is at most twice the root, and that is at least 2^15: one bit more than a word
	 * holds. */
	uint32_t quotient;
	uint64_t root;

	TINYML_ASSERT(upper >= 0x8000u);
	quotient = (uint32_t)(dividend >> 1) / upper;
	quotient = quotient > 0xFFFFu ? 0xFFFFu : quotient;
	root = (((uint64_t)upper << 16) + quotient) >> (spare / 2);
	while (root * root > x) {
		root--;
	}
	return (uint32_t)(x - root * root > root && root != 0xFFFFFFFFu ? root + 1 : root);
}

/* Update the estimate of the noise, and take it away. */
static uint32_t denoised(const struct tinyml_micro_frontend *p, uint32_t channel, uint32_t signal,
			 uint32_t *noise)
{
	const uint32_t share = channel & 1u ? p->odd_smoothing : p->even_smoothing;
	const uint32_t large = signal << p->noise_bits;
	uint32_t estimate = (uint32_t)(((uint64_t)large * share +
					(uint64_t)*noise * ((1u << SMOOTHING_BITS) - share)) >>
				       SMOOTHING_BITS);
	const uint32_t least = (uint32_t)(((uint64_t)signal * p->min_signal) >> SMOOTHING_BITS);

	*noise = estimate;
	estimate = estimate > large ? large : estimate;
	const uint32_t left = (large - estimate) >> p->noise_bits;

	return left > least ? left : least;
}

/* Divide by a power of the noise, then bend the result so that small values become smaller. */
static uint32_t with_gain(const struct tinyml_micro_frontend *p, uint32_t signal, uint32_t noise)
{
	const int32_t bits = bits_of(noise);
	const int16_t *parabola = &p->gains[3 * bits];
	const int32_t x =
		(int32_t)((bits < 11 ? noise << (11 - bits) : noise >> (bits - 11)) & 0x3FFu);
	const int32_t slope = ((parabola[2] * x) >> 5) + parabola[1] * 32;
	const int32_t gain = (int16_t)(((slope * x + (1 << 14)) >> 15) + parabola[0]);
	const uint32_t ratio = (uint32_t)(((uint64_t)signal * (uint32_t)gain) >> p->gain_shift);

	if (ratio < 2u << PCAN_SIGNAL_BITS) {
		return (ratio * ratio) >> (2 + 2 * PCAN_SIGNAL_BITS - PCAN_OUTPUT_BITS);
	}
	return (ratio >> (PCAN_SIGNAL_BITS - PCAN_OUTPUT_BITS)) - (1u << PCAN_OUTPUT_BITS);
}

/* The natural logarithm: a table of log2 between powers of two, straight between its entries. */
static uint32_t logarithm(const struct tinyml_micro_frontend *p, uint32_t signal)
{
	const int32_t up = p->correction_bits;
	const uint32_t x = up >= 0 ? signal << up : signal >> -up;

	if (x <= 1) {
		return 0;
	}
	const uint32_t whole = (uint32_t)bits_of(x) - 1u;
	const uint32_t above = x - (UINT32_C(1) << whole);
	const uint32_t part =
		whole < LOG_BITS ? above << (LOG_BITS - whole) : above >> (whole - LOG_BITS);
	const uint16_t *curve = &p->curve[part >> SEGMENT_BITS];
	const int32_t inside = (int32_t)(part & ((1u << SEGMENT_BITS) - 1u));
	const int32_t bend = curve[0] + (((curve[1] - curve[0]) * inside) >> LOG_BITS);
	const uint32_t binary = (whole << LOG_BITS) + part + (uint32_t)bend;
	const uint32_t half = 1u << (LOG_BITS - 1);
	const uint32_t natural = (uint32_t)(((uint64_t)LN2 * binary + half) >> LOG_BITS);

	return ((natural << p->log_shift) + half) >> LOG_BITS;
}

void tinyml_micro_frontend(const struct tinyml_micro_frontend *p, const int16_t *ring,
			   uint32_t oldest, uint32_t *work, uint32_t *noise, uint16_t *row)
{
	const uint32_t points = p->fft / 2u;
	const int32_t shift = 15 - bits_of((uint32_t)weigh(p, ring, oldest, work));
	const bool fours = (bits_of(points) & 1) != 0; /* a power of four */

	first_stage(work, points, fours, shift);
	for (uint32_t width = fours ? 4 : 2; width < points; width *= 4) {
		next_stage(work, points, width, p->turn);
	}
	energies(work, points, p->separation);

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
			uint32_t value = rounded_root(behind) >> shift;

			value = denoised(p, channel, value, &noise[channel]);
			value = p->pcan ? with_gain(p, value, noise[channel]) : value;
			value = p->log ? logarithm(p, value) : value;
			row[channel] = (uint16_t)(value < 0xFFFFu ? value : 0xFFFFu);
		}
		behind = ahead;
	}
}
