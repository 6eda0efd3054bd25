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
	if (all->counts[number] == MOST_EXAMPLES) {
		for (uint32_t i = 0; i < all->features; i++) {
			sums[i] = (int16_t)(sums[i] / 2);
		}
		all->counts[number] = MOST_EXAMPLES / 2;
	}
	for (uint32_t i = 0; i < all->features; i++) {
		sums[i] = (int16_t)(sums[i] + all->embedding[i]);
	}
	all->counts[number]++;
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

/* How far the embedding is from the mean of `count` examples with these sums. */
static float prototypes_distance(const struct tinyml_adapt_prototypes *all, const int16_t *sums,
				 int32_t count)
{
	int64_t left = 0, right = 0, both = 0;

	for (uint32_t i = 0; i < all->features; i++) {
		int32_t x = all->embedding[i] - all->zero_point;
		const int32_t y = sums[i] - count * all->zero_point;

		if (!all->cosine) {
			x = x * count - y;
		}
		left += (int64_t)x * x;
		right += (int64_t)y * y;
		both += (int64_t)x * y;
	}
	if (all->cosine) {
		const float length = tinyml_sqrtf((float)left) * tinyml_sqrtf((float)right);

		return length > 0.0f ? 1.0f - (float)both / length : 1.0f;
	}
	return tinyml_sqrtf((float)left) / (float)count * all->scale;
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
		if (all->counts[number] != 0u) {
			const float here = prototypes_distance(
				all, &all->sums[number * all->features], all->counts[number]);

			if (found < 0 || here < least) {
				found = number;
				least = here;
			}
		}
	}
	if (distance != NULL) {
		*distance = least;
	}
	return found >= 0 && all->reject > 0.0f && least > all->reject ? TINYML_ADAPT_NONE : found;
}

bool tinyml_adapt_valid_prototypes(const struct tinyml_adapt *adapt, const void *values)
{
	const struct tinyml_adapt_prototypes *const all =
		(const struct tinyml_adapt_prototypes *)adapt;
	const uint32_t elements = (uint32_t)all->classes * all->features;

	for (uint32_t i = 0; i < elements; i++) {
		int16_t sum;
		uint16_t count;

		memcpy(&sum, (const uint8_t *)values + 2u * i, 2);
		memcpy(&count, (const uint8_t *)values + 2u * (elements + i / all->features), 2);
		if (count > MOST_EXAMPLES || sum > 127 * count || sum < -128 * count) {
			return false;
		}
	}
	return true;
}
