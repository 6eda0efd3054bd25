/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Filters on int8 whose sums become real numbers: four at a time, the last ones one by one. */

#include <stddef.h>

#include <tinyml/tinyml.h>
#include <tinyml/to_f32.h>

#if TINYML_CORE_MVE

#include "mve_s8.h"

static void filters_s8_to_f32_dot_four(const int8_t *w, const int8_t *x, int32_t length,
				       int32_t sums[4])
{
	const int8_t *b = w + length, *c = b + length, *d = c + length;
	int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;

	for (int32_t left = length; left > 0; left -= TINYML_LANES) {
		const mve_pred16_t some = vctp8q((uint32_t)left);
		const int8x16_t v = vldrbq_z_s8(x, some);

		s0 = vmladavaq_s8(s0, v, vldrbq_z_s8(w, some));
		s1 = vmladavaq_s8(s1, v, vldrbq_z_s8(b, some));
		s2 = vmladavaq_s8(s2, v, vldrbq_z_s8(c, some));
		s3 = vmladavaq_s8(s3, v, vldrbq_z_s8(d, some));
		x += TINYML_LANES;
		w += TINYML_LANES;
		b += TINYML_LANES;
		c += TINYML_LANES;
		d += TINYML_LANES;
	}
	sums[0] = s0;
	sums[1] = s1;
	sums[2] = s2;
	sums[3] = s3;
}

static int32_t filters_s8_to_f32_dot_one(const int8_t *w, const int8_t *x, int32_t length)
{
	int32_t sum = 0;

	for (; length > 0; length -= TINYML_LANES, w += TINYML_LANES, x += TINYML_LANES) {
		const mve_pred16_t some = vctp8q((uint32_t)length);

		sum = vmladavaq_s8(sum, vldrbq_z_s8(x, some), vldrbq_z_s8(w, some));
	}
	return sum;
}

#else

#if TINYML_CORE_DSP

#include "dsp_s8.h"

#define STEP 4
#define ELEMENTS                                                                                   \
	const uint32_t elements = tinyml_load_word(x);                                             \
	const int16x2_t even = tinyml_even_bytes(elements);                                        \
	const int16x2_t odd = tinyml_odd_bytes(elements)
#define MULTIPLY(sum, w)                                                                           \
	do {                                                                                       \
		const uint32_t word = tinyml_load_word(w);                                         \
		sum = __smlad(tinyml_even_bytes(word), even, sum);                                 \
		sum = __smlad(tinyml_odd_bytes(word), odd, sum);                                   \
		w += STEP;                                                                         \
	} while (0)

#else

#define STEP     2
#define ELEMENTS const int32_t even = x[0], odd = x[1]
#define MULTIPLY(sum, w)                                                                           \
	do {                                                                                       \
		sum += even * w[0];                                                                \
		sum += odd * w[1];                                                                 \
		w += STEP;                                                                         \
	} while (0)

#endif

static void filters_s8_to_f32_dot_four(const int8_t *w, const int8_t *x, int32_t length,
				       int32_t sums[4])
{
	const int8_t *b = w + length, *c = b + length, *d = c + length;
	const int8_t *end = x + length;
	int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;

	for (const int8_t *whole = x + length / STEP * STEP; x != whole; x += STEP) {
		ELEMENTS;

		MULTIPLY(s0, w);
		MULTIPLY(s1, b);
		MULTIPLY(s2, c);
		MULTIPLY(s3, d);
	}
	for (; x != end; x++) {
		s0 += *x * *w++;
		s1 += *x * *b++;
		s2 += *x * *c++;
		s3 += *x * *d++;
	}
	sums[0] = s0;
	sums[1] = s1;
	sums[2] = s2;
	sums[3] = s3;
}

static int32_t filters_s8_to_f32_dot_one(const int8_t *w, const int8_t *x, int32_t length)
{
	const int8_t *end = x + length;
	int32_t sum = 0;

	for (const int8_t *whole = x + length / STEP * STEP; x != whole; x += STEP) {
		ELEMENTS;

		MULTIPLY(sum, w);
	}
	for (; x != end; x++) {
		sum += *x * *w++;
	}
	return sum;
}

#endif /* TINYML_CORE_MVE */

static float filters_s8_to_f32_finish(const struct tinyml_filters_to_f32 *p, int32_t sum,
				      int32_t index)
{
	const float scaled = (float)(sum + p->zeros[index]) * p->scales[index];
	const float v = p->bias != NULL ? scaled + p->bias[index] : scaled;

	return v < p->out_min ? p->out_min : v > p->out_max ? p->out_max : v;
}

void tinyml_filters_s8_to_f32(const struct tinyml_filters_to_f32 *p, const int8_t *x, int32_t first,
			      int32_t count, float *y)
{
	const int32_t inputs = p->inputs;
	const int8_t *w = &p->weights[first * inputs];
	int32_t shared = 0;
	int32_t i = 0;

	if (p->weight_zero != 0) {
		for (int32_t k = 0; k < inputs; k++) {
			shared += x[k];
		}
		shared *= p->weight_zero;
	}
	for (; i < count - 3; i += 4, w += 4 * inputs) {
		int32_t sums[4];

		filters_s8_to_f32_dot_four(w, x, inputs, sums);
		for (int32_t k = 0; k < 4; k++) {
			y[i + k] = filters_s8_to_f32_finish(p, sums[k] - shared, first + i + k);
		}
	}
	for (; i < count; i++, w += inputs) {
		y[i] = filters_s8_to_f32_finish(p, filters_s8_to_f32_dot_one(w, x, inputs) - shared,
						first + i);
	}
}
