/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The nearest of some classes, each the mean of its examples. Sums are integers; a distance is
 * rounded to float32 at its end. adapt/prototypes.py does the same in every bit. */

#include "exact.h"

#include <string.h>

#include <tinyml/maths_bits.h>

#define MOST_EXAMPLES 256 /* whose sums fit into int16; then older ones count half */

void tinyml_adapt_embed(const struct tinyml_adapt_prototypes *prototypes, const int8_t *x)
{
	memcpy(prototypes->embedding, x, prototypes->features);
	prototypes->adapt.run->ready = 1;
}

int tinyml_adapt_enroll(const struct tinyml_adapt *adapt, int32_t number, const float *targets)
{
	const struct tinyml_adapt_prototypes *const all =
		(const struct tinyml_adapt_prototypes *)adapt;
	int16_t *sums;
	bool full;

	(void)targets;
	if (number < TINYML_ADAPT_NEW || number >= all->classes) {
		return TINYML_EINVAL;
	}
	if (adapt->run->ready == 0u) {
		return TINYML_ADAPT_ENORUN;
	}
	if (number == TINYML_ADAPT_NEW) {
		do {
			if (++number == all->classes) {
				return TINYML_ADAPT_EFULL;
			}
		} while (all->counts[number] != 0u);
	}
	sums = &all->sums[number * all->features];
	full = all->counts[number] == MOST_EXAMPLES;
	for (uint32_t i = 0; i < all->features; i++) {
		const int32_t sum = full ? sums[i] >> 1 : sums[i];

		sums[i] = (int16_t)(sum + all->embedding[i]);
	}
	all->counts[number] = (uint16_t)((full ? MOST_EXAMPLES / 2 : all->counts[number]) + 1);
	adapt->learnt->count++;
	adapt->run->ready = 0;
	return number;
}

int tinyml_adapt_forget(const struct tinyml_adapt *adapt, int32_t number)
{
	const struct tinyml_adapt_prototypes *const all =
		(const struct tinyml_adapt_prototypes *)adapt;

	if (number < 0 || number >= all->classes || all->counts[number] == 0u) {
		return TINYML_EINVAL;
	}
	memset(&all->sums[number * all->features], 0, 2u * all->features);
	all->counts[number] = 0;
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

float tinyml_adapt_cosine(const struct tinyml_adapt_prototypes *all, const int16_t *sums,
			  int32_t count)
{
	int64_t left = 0, right = 0, both = 0;
	float length;

	for (uint32_t i = 0; i < all->features; i++) {
		const int32_t x = all->embedding[i] - all->zero_point;
		const int32_t y = sums[i] - count * all->zero_point;

		left += (int64_t)x * x;
		right += (int64_t)y * y;
		both += (int64_t)x * y;
	}
	length = tinyml_sqrtf(prototypes_float(left)) * tinyml_sqrtf(prototypes_float(right));
	return length > 0.0f ? 1.0f - prototypes_float(both) / length : 1.0f;
}

float tinyml_adapt_euclidean(const struct tinyml_adapt_prototypes *all, const int16_t *sums,
			     int32_t count)
{
	int64_t squares = 0;

	for (uint32_t i = 0; i < all->features; i++) {
		const int32_t away = all->embedding[i] * count - sums[i];

		squares += (int64_t)away * away;
	}
	return tinyml_sqrtf(prototypes_float(squares)) / (float)count * all->scale;
}

int tinyml_adapt_nearest(const struct tinyml_adapt *adapt, float *distance)
{
	const struct tinyml_adapt_prototypes *const all =
		(const struct tinyml_adapt_prototypes *)adapt;
	int found = TINYML_ADAPT_ENORUN;
	float least = 0.0f;

	if (adapt->run->ready == 0u) {
		return TINYML_ADAPT_ENORUN;
	}
	for (int32_t number = 0; number < all->classes; number++) {
		const int32_t count = all->counts[number];

		if (count != 0) {
			const float here =
				all->distance(all, &all->sums[number * all->features], count);

			if (found < 0 || here < least) {
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
	const uint8_t *const counts =
		(const uint8_t *)values + 2u * (uint32_t)all->classes * all->features;

	/* Any sums are: they are used modulo 2^16. */
	for (uint32_t i = 0; i < all->classes; i++) {
		if (counts[2u * i] + 256u * counts[2u * i + 1u] > MOST_EXAMPLES) {
			return false;
		}
	}
	return true;
}
