/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/fft.h>

#define LARGEST_RADIX 31

struct number {
	float re;
	float im;
};

static inline struct number fft_f32_sum(struct number a, struct number b)
{
	return (struct number){a.re + b.re, a.im + b.im};
}

static inline struct number fft_f32_difference(struct number a, struct number b)
{
	return (struct number){a.re - b.re, a.im - b.im};
}

static inline struct number fft_f32_product(struct number a, struct number b)
{
	return (struct number){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static inline struct number fft_f32_scaled(struct number a, float factor)
{
	return (struct number){a.re * factor, a.im * factor};
}

/* i * sign * a */
static inline struct number fft_f32_quarter(struct number a, float sign)
{
	return (struct number){-sign * a.im, sign * a.re};
}

static inline void fft_f32_join2(struct number *z, int32_t width, struct number b)
{
	const struct number a = z[0];

	z[0] = fft_f32_sum(a, b);
	z[width] = fft_f32_difference(a, b);
}

static inline void fft_f32_join3(struct number *z, int32_t width, struct number b, struct number c,
				 float sign)
{
	const struct number both = fft_f32_sum(b, c), a = z[0];
	const struct number across =
		fft_f32_quarter(fft_f32_scaled(fft_f32_difference(b, c), 0.866025404f), sign);
	const struct number middle = fft_f32_difference(a, fft_f32_scaled(both, 0.5f));

	z[0] = fft_f32_sum(a, both);
	z[width] = fft_f32_sum(middle, across);
	z[2 * width] = fft_f32_difference(middle, across);
}

static inline void fft_f32_join4(struct number *z, int32_t width, struct number b, struct number c,
				 struct number d, float sign)
{
	const struct number even = fft_f32_sum(z[0], c), odd = fft_f32_difference(z[0], c);
	const struct number both = fft_f32_sum(b, d),
			    across = fft_f32_quarter(fft_f32_difference(b, d), sign);

	z[0] = fft_f32_sum(even, both);
	z[width] = fft_f32_sum(odd, across);
	z[2 * width] = fft_f32_difference(even, both);
	z[3 * width] = fft_f32_difference(odd, across);
}

static inline void fft_f32_join5(struct number *z, int32_t width, struct number b, struct number c,
				 struct number d, struct number e, float sign)
{
	const struct number a = z[0];
	const struct number outer = fft_f32_sum(b, e), inner = fft_f32_sum(c, d);
	const struct number far = fft_f32_difference(b, e), near = fft_f32_difference(c, d);
	const struct number u = fft_f32_sum(a, fft_f32_sum(fft_f32_scaled(outer, 0.309016994f),
							   fft_f32_scaled(inner, -0.809016994f)));
	const struct number v = fft_f32_sum(a, fft_f32_sum(fft_f32_scaled(outer, -0.809016994f),
							   fft_f32_scaled(inner, 0.309016994f)));
	const struct number s = fft_f32_quarter(
		fft_f32_sum(fft_f32_scaled(far, 0.951056516f), fft_f32_scaled(near, 0.587785252f)),
		sign);
	const struct number t =
		fft_f32_quarter(fft_f32_difference(fft_f32_scaled(far, 0.587785252f),
						   fft_f32_scaled(near, 0.951056516f)),
				sign);

	z[0] = fft_f32_sum(a, fft_f32_sum(outer, inner));
	z[width] = fft_f32_sum(u, s);
	z[2 * width] = fft_f32_sum(v, t);
	z[3 * width] = fft_f32_difference(v, t);
	z[4 * width] = fft_f32_difference(u, s);
}

/* Any other radix, by definition; `roots` is one turn of it. */
static void fft_f32_join_any(struct number *z, int32_t width, int32_t radix, const struct number *w,
			     const struct number *roots)
{
	struct number legs[LARGEST_RADIX];

	legs[0] = z[0];
	for (int32_t leg = 1; leg < radix; leg++) {
		legs[leg] = w == 0 ? z[leg * width] : fft_f32_product(z[leg * width], w[leg - 1]);
	}
	for (int32_t k = 0; k < radix; k++) {
		struct number total = legs[0];

		for (int32_t leg = 1, turn = k; leg < radix; leg++) {
			total = fft_f32_sum(total, fft_f32_product(legs[leg], roots[turn]));
			turn = turn + k < radix ? turn + k : turn + k - radix;
		}
		z[k * width] = total;
	}
}

/* The first stage joins neighbours, and there is nothing to multiply by. */
static void fft_f32_first_stage(struct number *z, const struct number *end, int32_t radix,
				float sign, const struct number *roots)
{
	for (; z < end; z += radix) {
		switch (radix) {
		case 2:
			fft_f32_join2(z, 1, z[1]);
			break;
		case 3:
			fft_f32_join3(z, 1, z[1], z[2], sign);
			break;
		case 4:
			fft_f32_join4(z, 1, z[1], z[2], z[3], sign);
			break;
		case 5:
			fft_f32_join5(z, 1, z[1], z[2], z[3], z[4], sign);
			break;
		default:
			fft_f32_join_any(z, 1, radix, 0, roots);
			break;
		}
	}
}

/* Join `radix` transforms of `width` points. */
static const struct number *fft_f32_next_stage(struct number *z, const struct number *end,
					       int32_t width, int32_t radix, const struct number *w,
					       float sign, const struct number *roots)
{
	const int32_t step = width * radix;

	for (int32_t k = 0; k < width; k++, w += radix - 1) {
		struct number *p = z + k;

		switch (radix) {
		case 2:
			for (; p < end; p += step) {
				fft_f32_join2(p, width, fft_f32_product(p[width], w[0]));
			}
			break;
		case 3:
			for (; p < end; p += step) {
				fft_f32_join3(p, width, fft_f32_product(p[width], w[0]),
					      fft_f32_product(p[2 * width], w[1]), sign);
			}
			break;
		case 4: {
			const struct number w1 = w[0], w2 = w[1], w3 = w[2];

			for (; p < end; p += step) {
				fft_f32_join4(p, width, fft_f32_product(p[width], w1),
					      fft_f32_product(p[2 * width], w2),
					      fft_f32_product(p[3 * width], w3), sign);
			}
			break;
		}
		case 5:
			for (; p < end; p += step) {
				fft_f32_join5(p, width, fft_f32_product(p[width], w[0]),
					      fft_f32_product(p[2 * width], w[1]),
					      fft_f32_product(p[3 * width], w[2]),
					      fft_f32_product(p[4 * width], w[3]), sign);
			}
			break;
		default:
			for (; p < end; p += step) {
				fft_f32_join_any(p, width, radix, w, roots);
			}
			break;
		}
	}
	return w;
}

static void fft_f32_stages(const struct tinyml_fft_f32 *p, struct number *z)
{
	const struct number *w = (const struct number *)(const void *)p->twiddles;
	const struct number *roots = (const struct number *)(const void *)p->roots;
	const struct number *const end = z + p->points;
	int32_t width = 1;
	int32_t last = 0;

	for (const uint8_t *radix = p->radices; *radix != 0; radix++) {
		if (*radix > 5 && last > 5 && *radix != last) {
			roots += last;
		}
		if (width == 1) {
			fft_f32_first_stage(z, end, *radix, p->sign, roots);
		} else {
			w = fft_f32_next_stage(z, end, width, *radix, w, p->sign, roots);
		}
		width *= *radix;
		last = *radix;
	}
}

static void fft_f32_load_pairs(const struct tinyml_fft_f32 *p, const float *x, int32_t count,
			       struct number *z)
{
	const struct number none = {0.0f, 0.0f};
	const int32_t whole = count / 2;
	int32_t i = 0;

	for (; i < whole; i++, x += 2) {
		z[p->places[i]] = (struct number){x[0], x[1]};
	}
	if ((count & 1) != 0) {
		z[p->places[i++]] = (struct number){x[0], 0.0f};
	}
	for (; i < p->points; i++) {
		z[p->places[i]] = none;
	}
}

void tinyml_fft_complex_f32(const struct tinyml_fft_f32 *p, const float *x, int32_t count, float *y)
{
	struct number *z = (struct number *)(void *)y;

	fft_f32_load_pairs(p, x, 2 * count, z);
	fft_f32_stages(p, z);
}

void tinyml_fft_of_real_f32(const struct tinyml_fft_f32 *p, const float *x, int32_t count, float *y)
{
	struct number *z = (struct number *)(void *)y;

	for (int32_t i = 0; i < p->points; i++) {
		z[p->places[i]] = (struct number){i < count ? x[i] : 0.0f, 0.0f};
	}
	fft_f32_stages(p, z);
}

void tinyml_fft_half_f32(const struct tinyml_fft_f32 *p, const float *x, int32_t count, float *y)
{
	fft_f32_load_pairs(p, x, count, (struct number *)(void *)y);
	tinyml_fft_half_placed_f32(p, y);
}

void tinyml_fft_half_placed_f32(const struct tinyml_fft_f32 *p, float *y)
{
	struct number *z = (struct number *)(void *)y;
	const struct number *w = (const struct number *)(const void *)p->separation;
	const int32_t points = p->points;

	fft_f32_stages(p, z);

	/* Even and odd samples were transformed as real and imaginary parts of one signal: half the
	 * sum of mirrored numbers is the spectrum of the even ones, half the difference that of the
	 * odd. */
	const struct number first = z[0];

	z[0] = (struct number){first.re + first.im, 0.0f};
	z[points] = (struct number){first.re - first.im, 0.0f};
	for (int32_t k = 1; k <= points / 2; k++, w++) {
		const struct number near = z[k], far = z[points - k];
		const struct number even = {0.5f * (near.re + far.re), 0.5f * (near.im - far.im)};
		const struct number odd = {0.5f * (near.im + far.im), 0.5f * (far.re - near.re)};
		const struct number turned = fft_f32_product(odd, *w);

		z[k] = fft_f32_sum(even, turned);
		z[points - k] = (struct number){even.re - turned.re, turned.im - even.im};
	}
}
