/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/tinyml.h>
#include <tinyml/fft.h>

#include "fft_s16.h"

static uint32_t fft_s16_enlarged(uint32_t z, int32_t shift)
{
	const uint32_t low = (z << shift) & 0xFFFFu;

	return low | ((z & 0xFFFF0000u) << shift);
}

/* The first stage, on neighbours, whose factors are all 1. */
static void fft_s16_first_stage(uint32_t *z, uint32_t points, bool fours, int32_t shift)
{
	if (!fours) {
		for (uint32_t *end = z + points; z < end; z += 2) {
			const uint32_t a =
				tinyml_pair_scaled(fft_s16_enlarged(z[0], shift), 32767 / 2);
			const uint32_t b =
				tinyml_pair_scaled(fft_s16_enlarged(z[1], shift), 32767 / 2);

			z[0] = tinyml_pair_add(a, b);
			z[1] = tinyml_pair_sub(a, b);
		}
		return;
	}
	for (uint32_t *end = z + points; z < end; z += 4) {
		const uint32_t a = tinyml_pair_scaled(fft_s16_enlarged(z[0], shift), 32767 / 4);
		const uint32_t b = tinyml_pair_scaled(fft_s16_enlarged(z[1], shift), 32767 / 4);
		const uint32_t c = tinyml_pair_scaled(fft_s16_enlarged(z[2], shift), 32767 / 4);
		const uint32_t d = tinyml_pair_scaled(fft_s16_enlarged(z[3], shift), 32767 / 4);
		const uint32_t even = tinyml_pair_add(a, c), odd = tinyml_pair_sub(a, c);
		const uint32_t both = tinyml_pair_add(b, d), across = tinyml_pair_sub(b, d);

		z[0] = tinyml_pair_add(even, both);
		z[1] = tinyml_pair_sub_i(odd, across);
		z[2] = tinyml_pair_sub(even, both);
		z[3] = tinyml_pair_add_i(odd, across);
	}
}

/* A later stage joins four transforms of `width` points. */
static void fft_s16_next_stage(uint32_t *z, uint32_t points, uint32_t width, const uint32_t *turn)
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

void tinyml_fft_stages_s16(uint32_t *z, uint32_t points, const uint32_t *turn, int32_t shift)
{
	/* a power of four has an odd number of bits */
	const bool fours = (__builtin_clz(points) & 1) != 0;

	fft_s16_first_stage(z, points, fours, shift);
	for (uint32_t width = fours ? 4 : 2; width < points; width *= 4) {
		fft_s16_next_stage(z, points, width, turn);
	}
}

static void fft_s16_put(int16_t *y, uint32_t bin, int32_t re, int32_t im)
{
	y[2 * bin] = (int16_t)re;
	y[2 * bin + 1] = (int16_t)im;
}

void tinyml_rfft_s16(const struct tinyml_fft_s16 *p, const int16_t *x, uint32_t samples,
		     uint32_t *work, int16_t *y)
{
	const uint32_t points = p->points;

	for (uint32_t n = 0; n < points; n++) {
		const int32_t re = 2 * n < samples ? x[2 * n] : 0;
		const int32_t im = 2 * n + 1 < samples ? x[2 * n + 1] : 0;

		work[p->places[n]] = tinyml_pair(re, im);
	}
	tinyml_fft_stages_s16(work, points, p->turn, 0);

	const uint32_t sums = tinyml_pair_scaled(work[0], 32767 / 2);

	fft_s16_put(y, 0, tinyml_pair_re(sums) + tinyml_pair_im(sums), 0);
	fft_s16_put(y, points, tinyml_pair_re(sums) - tinyml_pair_im(sums), 0);
	for (uint32_t k = 1; k <= points / 2; k++) {
		uint32_t even, odd;

		tinyml_fft_split(work[k], work[points - k], p->separation[k - 1], &even, &odd);

		const int32_t er = tinyml_pair_re(even), ei = tinyml_pair_im(even);
		const int32_t pr = tinyml_pair_re(odd), pi = tinyml_pair_im(odd);

		fft_s16_put(y, k, (er + pr) >> 1, (ei + pi) >> 1);
		/* The last one counts in the middle. */
		fft_s16_put(y, points - k, (er - pr) >> 1, (pi - ei) >> 1);
	}
}

/* The number of a bin with its parts exchanged. */
static uint32_t fft_s16_exchanged(const int16_t *x, uint32_t bin)
{
	return tinyml_pair(x[2 * bin + 1], x[2 * bin]);
}

void tinyml_irfft_s16(const struct tinyml_fft_s16 *p, const int16_t *x, uint32_t *work, int16_t *y)
{
	const uint32_t points = p->points;
	const int32_t first = x[0], last = x[2 * points];

	work[0] = tinyml_pair_scaled(tinyml_pair(first - last, first + last), 32767 / 2);
	for (uint32_t k = 1; k <= points / 2; k++) {
		const uint32_t mirror = fft_s16_exchanged(x, points - k);
		const uint32_t conjugate =
			tinyml_pair(-tinyml_pair_re(mirror), tinyml_pair_im(mirror));
		const uint32_t near = tinyml_pair_scaled(fft_s16_exchanged(x, k), 32767 / 2);
		const uint32_t far = tinyml_pair_scaled(conjugate, 32767 / 2);
		const uint32_t even = tinyml_pair_add(near, far);
		const uint32_t odd =
			tinyml_pair_times(tinyml_pair_sub(near, far), p->separation[k - 1]);
		const uint32_t back = tinyml_pair_sub(even, odd);

		work[p->places[k]] = tinyml_pair_add(even, odd);
		work[p->places[points - k]] =
			tinyml_pair(-tinyml_pair_re(back), tinyml_pair_im(back));
	}
	tinyml_fft_stages_s16(work, points, p->turn, 0);
	for (uint32_t n = 0; n < points; n++) {
		fft_s16_put(y, n, tinyml_pair_im(work[n]), tinyml_pair_re(work[n]));
	}
}
