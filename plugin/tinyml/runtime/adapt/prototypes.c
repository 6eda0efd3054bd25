/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The nearest of some classes, each the mean of its examples. Sums are integers; a distance is
 * rounded to float32 at its end. adapt/prototypes.py does the same in every bit. */

#include "exact.h"

#include <string.h>

#include <tinyml/maths_bits.h>

#define MOST_EXAMPLES 256 /* whose sums fit into int16; then older ones count half */

/* What is known about a class: the number of its examples, then their sums; NULL if there is no
 * such class. */
static __attribute__((noinline)) int16_t *
prototypes_class(const struct tinyml_adapt_prototypes *all, int32_t number)
{
	return (uint32_t)number < all->classes ? &all->values[number * (all->features + 1)] : NULL;
}

void tinyml_adapt_embed(const struct tinyml_adapt_prototypes *prototypes, const int8_t *x)
{
	memcpy(prototypes->embedding, x, prototypes->features);
	prototypes->adapt.run->ready = 1;
}

int tinyml_adapt_enroll(const struct tinyml_adapt *adapt, int32_t number, const float *targets)
{
	const struct tinyml_adapt_prototypes *const all =
		(const struct tinyml_adapt_prototypes *)adapt;
	const int32_t step = number == TINYML_ADAPT_NEW ? 1 : 0;
	int16_t *class;
	int32_t half;

	(void)targets;
	do {
		number += step;
		class = prototypes_class(all, number);
		if (class == NULL) {
			return step != 0 ? TINYML_ADAPT_EFULL : TINYML_EINVAL;
		}
	} while (step != 0 && class[0] != 0);
	if (adapt->run->ready == 0u) {
		return TINYML_ADAPT_ENORUN;
	}
	half = class[0] >> 8; /* 1 after MOST_EXAMPLES */
	class[0] = (int16_t)((class[0] >> half) + 1);
	for (uint32_t i = 0; i < all->features; i++) {
		class[1u + i] = (int16_t)((class[1u + i] >> half) + all->embedding[i]);
	}
	adapt->learnt->count++;
	adapt->run->ready = 0;
	return number;
}

int tinyml_adapt_forget(const struct tinyml_adapt *adapt, int32_t number)
{
	const struct tinyml_adapt_prototypes *const all =
		(const struct tinyml_adapt_prototypes *)adapt;
	int16_t *const class = prototypes_class(all, number);

	if (class == NULL || class[0] == 0) {
		return TINYML_EINVAL;
	}
	memset(class, 0, 2u * (all->features + 1u));
	adapt->learnt->count++;
	return 0;
}

/* The nearest float32: both parts are exact, so only their sum is rounded. The compiler's own
 * conversion from int64 is a function of libgcc. Sums are below 2^48. */
static __attribute__((noinline)) float prototypes_float(int64_t x)
{
	const float high = (float)(int32_t)(x >> 24) * 16777216.0f;

	return high + (float)(int32_t)(x & 0xffffff);
}

float tinyml_adapt_cosine(const struct tinyml_adapt_prototypes *all, const int16_t *class)
{
	const int32_t zero = all->zero_point;
	int64_t right = 0, both = 0;
	uint32_t left = 0; /* 65,535 squares of 255 fit */
	float lengths;

	for (uint32_t i = 0; i < all->features; i++) {
		const int32_t x = all->embedding[i] - zero;
		const int32_t y = class[1u + i] - class[0] * zero;

		left += (uint32_t)(x * x);
		right += (int64_t)y * y;
		both += (int64_t)x * y;
	}
	/* The summand changes only 0, whose distance from anything is then 1. */
	lengths = (float)left * prototypes_float(right) + 1e-30f;
	return 1.0f - prototypes_float(both) / tinyml_sqrtf(lengths);
}

float tinyml_adapt_euclidean(const struct tinyml_adapt_prototypes *all, const int16_t *class)
{
	int64_t squares = 0;

	for (uint32_t i = 0; i < all->features; i++) {
		const int32_t away = all->embedding[i] * class[0] - class[1u + i];

		squares += (int64_t)away * away;
	}
	return tinyml_sqrtf(prototypes_float(squares)) / (float)class[0] * all->scale;
}

int tinyml_adapt_nearest(const struct tinyml_adapt *adapt, float *distance)
{
	const struct tinyml_adapt_prototypes *const all =
		(const struct tinyml_adapt_prototypes *)adapt;
	int32_t number = all->classes;
	int found = TINYML_ADAPT_ENORUN;
	float least = 3e38f; /* more than any distance */

	while (adapt->run->ready != 0u) {
		const int16_t *const class = prototypes_class(all, --number);

		if (class == NULL) { /* they end before the first */
			break;
		}
		if (class[0] != 0) {
			const float here = all->distance(all, class);

			if (here <= least) { /* the first of those that are equally near */
				found = number;
				least = here;
			}
		}
	}
	if (distance != NULL) {
		*distance = least;
	}
	return found >= 0 && least > all->reject ? TINYML_ADAPT_NONE : found;
}

bool tinyml_adapt_valid_prototypes(const struct tinyml_adapt *adapt, const void *values)
{
	const struct tinyml_adapt_prototypes *const all =
		(const struct tinyml_adapt_prototypes *)adapt;
	const uint8_t *class = values;

	/* Any sums are: they are used modulo 2^16. */
	for (uint32_t i = 0; i < all->classes; i++) {
		uint16_t count;

		memcpy(&count, class, sizeof(count));
		if (count > MOST_EXAMPLES) {
			return false;
		}
		class += 2u * (all->features + 1u);
	}
	return true;
}
